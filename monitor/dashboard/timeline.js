// The healths of a session over its time, in words.

import { agoElement, fullWall, now, spoken, timely, wall } from './clock.js';
import { el } from './element.js';
import { badge, lookOfChange, nameOf } from './health.js';

const changesShown = 8;

/** How the session looks since a change. Of its newest change its state, `now`, knows more: whether a rest is a person's turn. */
const lookSince = (change, now) => (['blocked', 'idle'].includes(change.health) && now ? now : lookOfChange(change));

/** Pieces of one health each: {health, begin, end, reason}; `state` is the session's, which names its last piece. */
export function pieces(begin, transitions, end, state = null) {
  const list = [];
  let at = begin;
  let health = transitions[0]?.from ?? 'unknown';
  let reason = '';
  for (const change of transitions) {
    if (change.at > at) list.push({ health, begin: at, end: change.at, reason });
    health = lookSince(change, change === transitions.at(-1) ? state : null);
    ({ reason } = change);
    at = Math.max(at, change.at);
  }
  list.push({ health, begin: at, end: Math.max(end, at + 1), reason });
  return list;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800,
               604800].map((seconds) => seconds * 1000);

/** Full moments between begin and end, at most five. */
export function moments(begin, end) {
  const step = steps.find((size) => (end - begin) / size <= 5) ?? (end - begin) / 4;
  const zone = new Date(begin).getTimezoneOffset() * 60000;
  const list = [];
  for (let at = Math.ceil((begin - zone) / step) * step + zone; at < end; at += step) list.push(at);
  return list;
}

/** `draw({begin, transitions, end, state})` shows it anew. */
export class Timeline {
  node = el('section', { class: 'timeline', 'aria-labelledby': 'timeline-title' });
  #sums = el('ul', { class: 'sums' });
  #changes = el('ol', { class: 'changes', reversed: true });
  #all = el('button', { type: 'button', class: 'plain', hidden: true, onclick: () => { this.#shown = Infinity; this.#list(); } });
  #shown = changesShown;
  #transitions = [];
  #state = null;
  #listed = null;

  constructor() {
    this.node.append(el('h2', { id: 'timeline-title' }, 'Health over time'), this.#sums,
                     el('h3', {}, 'Changes of health'), this.#changes, this.#all);
  }

  draw({ begin, transitions, end, state }) {
    const until = end ?? now();
    const list = pieces(begin, transitions, until, state);
    this.#state = state;
    const span = list.at(-1).end - begin || 1;
    const sums = new Map();
    for (const { health, begin: from, end: to } of list) sums.set(health, (sums.get(health) ?? 0) + to - from);
    const shown = [...sums].map(([health, ms]) => `${nameOf(health)} ${spoken(ms)}`);
    this.#sums.setAttribute('aria-label', `Healths over ${spoken(span)}: ${shown.join(', ')}. Now ${nameOf(list.at(-1).health)}.`);
    this.#sums.replaceChildren(...[...sums].map(([health, ms]) => el('li', {}, badge(health), ` ${spoken(ms)}`)));
    this.#transitions = transitions;
    this.#list();
  }

  /** The newest first; made anew only where there are others. */
  #list() {
    const key = `${this.#transitions.length} ${this.#transitions.at(-1)?.id} ${this.#shown} ${this.#state}`;
    if (key === this.#listed) return;
    this.#listed = key;
    const newest = this.#transitions.slice(-this.#shown).reverse();
    this.#changes.start = this.#transitions.length;
    this.#changes.replaceChildren(...newest.map((change, at) => el('li', {},
      badge(lookSince(change, at === 0 ? this.#state : null)), el('span', {}, timely(change.reason)), agoElement(change.at))));
    const more = this.#transitions.length - newest.length;
    this.#all.hidden = more <= 0;
    this.#all.textContent = `Show ${more} older`;
  }
}

export const atWall = (time) => el('time', { datetime: new Date(time).toISOString(), title: fullWall(time) }, wall(time));
