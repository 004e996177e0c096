// What a session is like, in one word: its health, or how it ended.

import { el, mark, put } from './element.js';

export const healths = ['stuck', 'looping', 'dead', 'silent', 'suspect', 'blocked', 'slow', 'unknown',
                        'starting', 'progressing'];
export const ends = ['failed', 'incomplete', 'cancelled', 'completed'];
export const lifecycles = ['running', 'waiting', 'idle', ...ends];
const trouble = new Set(['stuck', 'looping', 'silent', 'dead']);
const order = new Map([...healths, ...ends].map((word, at) => [word, at]));

export const hasEnded = (session) => ends.includes(session.lifecycle);
/** Health of who runs, lifecycle of who has ended. */
export const wordOf = (session) => (hasEnded(session) ? session.lifecycle : session.health);
export const inTrouble = (session) => !hasEnded(session) && trouble.has(session.health);
export const isTrouble = (health) => trouble.has(health);
/** The worst first. */
export const rank = (word) => order.get(word) ?? order.size;

/** Word, icon and colour together. */
export function badge(word) {
  const node = el('span', { class: `health ${word}` }, el('span', { class: 'icon', 'aria-hidden': 'true' }),
                  el('span', {}, word));
  return node;
}

export function setBadge(node, word) {
  mark(node, 'class', `health ${word}`);
  put(node.lastChild, word);
}

/** How long a call runs, and what that is called. Long is not wrong. */
export function pace(ms) {
  if (ms < 10000) return 'brief';
  return ms < 30000 ? 'lasting' : 'long';
}
