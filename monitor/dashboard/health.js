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

/** A time that is left, as people say it. */
function roughly(ms) {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 100) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** What the model's server does, for a cell: `reading 41,216 / 61,440, ~2 min`. */
export function serverBrief(server) {
  if (!server || server.state === 'unknown') return '';
  const { state, done, total, leftMs } = server;
  const counted = total ? ` ${done.toLocaleString()} / ${total.toLocaleString()}` : done ? ` ${done.toLocaleString()}` : '';
  return `${state}${counted}${leftMs === null ? '' : `, ~${roughly(leftMs)}`}`;
}

const serverWords = {
  loading: 'loads the model', queued: 'has queued the request', reading: 'reads the prompt', writing: 'writes the answer',
  working: 'is busy and tells nothing of how far it is', quiet: 'is quiet', hung: 'hangs', restarted: 'was started anew',
  gone: 'is gone', unknown: 'tells nothing',
};

/** Likewise in words: `reads the prompt: 41,216 of 61,440 tokens (67 %), about 2 min left`. */
export function serverSaid({ state, done, total, leftMs }) {
  const tokens = total ? `: ${done.toLocaleString()} of ${total.toLocaleString()} tokens (${Math.floor(100 * done / total)} %)`
    : done ? `: ${done.toLocaleString()} tokens so far` : '';
  return `${serverWords[state] ?? state}${tokens}${leftMs === null ? '' : `${tokens ? ', ' : ': '}about ${roughly(leftMs)} left`}`;
}

/** How long a call runs, and what that is called. Long is not wrong. */
export function pace(ms) {
  if (ms < 10000) return 'brief';
  return ms < 30000 ? 'lasting' : 'long';
}
