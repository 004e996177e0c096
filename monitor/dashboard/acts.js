// What the rules of the monitor's owner did: with one session, and whether they act at all.

import { find, get, may } from './api.js';
import { agoElement } from './clock.js';
import { el } from './element.js';

const acts = new Set(['nudge', 'refuse', 'end_call', 'command', 'cancel']);
const shownMax = 20;
const keptMax = 2000;
const pagesMax = 20;
const rulesMs = 10000;

const nameOf = (actor) => actor.replace(/^rule:/, 'rule ');

/** An act and its result belong to one verdict: that of the rule whose proof begins there. */
const verdictOf = ({ actor, proof }) => `${actor} ${proof.events[0] ?? 0}`;

/** What was done, in words. */
function saidOf({ result }) {
  if (result === 'ok') return 'done';
  if (result.startsWith('would ')) return 'dry run: nothing was done';
  return result === 'held out' ? 'held out: left alone, to compare' : result;
}

/** How the session went on after the first act for a verdict; `end`: the entry that says so, if there is one. */
function endOf(end) {
  if (!end) return 'open';
  return /^(held out, )?recovered\b/.test(end.result) ? 'recovered' : 'not recovered';
}

/** Acts for a verdict with what came of each, in the order of `entries`: {act, said, after}. `after` is null where nothing is measured. */
export function actsOf(entries) {
  const proven = entries.filter(({ proof }) => proof);
  const ends = new Map(proven.filter(({ action }) => action === 'trial').map((entry) => [verdictOf(entry), entry]));
  const seen = new Set();
  return proven.filter(({ action }) => acts.has(action)).map((act) => {
    const verdict = verdictOf(act);
    const isTrial = act.actor.startsWith('rule:') && !act.result.startsWith('would ') && !seen.has(verdict);
    if (isTrial) seen.add(verdict);
    return { act, said: saidOf(act), after: isTrial ? endOf(ends.get(verdict)) : null };
  });
}

const eventLink = (seq) => el('a', { href: `#event-${seq}` }, String(seq));

/** The text of a proof, with its events as links. */
function proofNodes({ text, events }) {
  const [before] = text.split(/, events? /);
  if (events.length === 0) return [text];
  const [first, last] = events.map(eventLink);
  return last ? [`${before}, events `, first, ' to ', last] : [`${before}, event `, first];
}

const looks = { recovered: 'recovered', 'not recovered': 'failed', open: 'unknown' };

const item = ({ act, said, after }) => el('li', {},
  el('span', {}, el('b', {}, act.action.replace('_', ' ')), ` by ${nameOf(act.actor)}: ${said}`), agoElement(act.at),
  el('small', {}, ...proofNodes(act.proof)),
  after && el('small', {}, 'Afterwards: ', el('span', { class: `after ${looks[after]}` }, after)));

/** `load` asks for what is new, and shows it. Hidden while there is nothing, and for those who may not read acts. */
export class Acts {
  node = el('section', { class: 'acts', hidden: true, 'aria-labelledby': 'acts-title' });
  #path;
  #list = el('ol', {});
  #earlier = el('p', { class: 'hint', hidden: true });
  #entries = [];
  #after = 0;
  #asking = false;

  constructor(session) {
    this.#path = `/api/audit?sessionId=${encodeURIComponent(session)}&limit=1000`;
    this.node.append(el('h2', { id: 'acts-title' }, 'What the monitor did'), this.#earlier, this.#list);
  }

  async load() {
    if (this.#asking || !may('act')) return;
    this.#asking = true;
    const known = this.#entries.length;
    try {
      for (let pages = 0; pages < pagesMax; ++pages) {
        const page = await get(`${this.#path}&after=${this.#after}`);
        this.#entries.push(...page.audit);
        this.#after = page.next ?? page.audit.at(-1)?.id ?? this.#after;
        if (page.next === null) break;
      }
    } catch {
      // The next time.
    } finally {
      this.#asking = false;
    }
    if (this.#entries.length !== known) this.#show();
    this.#entries = this.#entries.slice(-keptMax);
  }

  #show() {
    const all = actsOf(this.#entries);
    const shown = all.slice(-shownMax);
    this.node.hidden = all.length === 0;
    this.#earlier.hidden = all.length === shown.length;
    this.#earlier.textContent = `${(all.length - shown.length).toLocaleString()} earlier acts: watchdog-monitor explain lists them.`;
    this.#list.start = all.length - shown.length + 1;
    this.#list.replaceChildren(...shown.map(item));
  }
}

/** The event by which the monitor claims an act, or says what came of it. Its entry comes a moment later. */
export const isAct = ({ kind, name, event_id: id }) => kind === 'message' && name === 'hook' && id?.startsWith('rule:');

/** Why rules do not act, with the command to type; null: they do, or there are none. */
function restOf({ paused, rules }) {
  if (rules.length === 0) return null;
  if (paused) return ['All rules are paused: none acts until ', 'watchdog-monitor recovery resume'];
  const off = rules.filter((rule) => rule.off).map(({ name }) => name);
  if (off.length === 0) return null;
  const [who, whose] = off.length === 1 ? [`Rule ${off[0]} switched itself off`, 'its'] : [`Rules ${off.join(', ')} switched themselves off`, 'their'];
  return [`${who}, because fewer sessions recovered after ${whose} acts: `, 'watchdog-monitor recovery report'];
}

/** Says so where rules are paused or switched themselves off. */
export async function showRules(main) {
  const note = el('p', { class: 'warning', id: 'rules', role: 'status', hidden: true });
  main.prepend(note);
  let shown = '';
  const look = async () => {
    const recovery = await find('/api/recovery').catch(() => undefined);
    const rest = recovery ? restOf(recovery) : null;
    const text = rest?.join('') ?? '';
    note.hidden = !rest;
    if (rest && text !== shown) note.replaceChildren(rest[0], el('code', {}, rest[1]));
    shown = text;
    return recovery === undefined || recovery?.rules.length > 0;  // rules are settings: without any it stays so
  };
  if (await look()) setInterval(() => { if (!document.hidden) look(); }, rulesMs);
}
