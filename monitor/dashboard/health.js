// The state of a session in one word. The monitor decides the state, and who must act. This file only decides the look.

import { el, mark, put } from './element.js';

/** The worst first, as the monitor sorts them. */
export const states = ['dead', 'stuck', 'looping', 'silent', 'failed', 'needs_input', 'incomplete', 'your_turn', 'suspect', 'waiting',
                       'slow', 'unknown', 'starting', 'progressing', 'idle', 'cancelled', 'completed'];
export const attentions = ['needs_you', 'ready', 'watch', 'working', 'resting'];
export const attentionNames = { needs_you: 'Needs you', ready: 'Your turn', watch: 'Watch', working: 'Working', resting: 'Resting' };
export const ends = ['failed', 'incomplete', 'cancelled', 'completed'];
export const lifecycles = ['running', 'waiting', 'idle', ...ends];
const trouble = new Set(['stuck', 'looping', 'silent', 'dead']);
const order = new Map(states.map((word, at) => [word, at]));
const names = { needs_input: 'needs input', your_turn: 'your turn', blocked: 'waiting' };

export const hasEnded = (session) => ends.includes(session.lifecycle);
export const needsYou = (session) => session.attention === 'needs_you';
export const isTrouble = (health) => trouble.has(health);
/** The worst first. */
export const rank = (word) => order.get(word) ?? order.size;
export const nameOf = (word) => names[word] ?? word;

/** What only a person can give, as the monitor names it in the reason of a wait. */
const fromPeople = /^(approval|input|login|billing|permission|answer|question|confirmation|user|human)(?=$|:| of | until )/;
export const isForPerson = (what) => fromPeople.test(what ?? '');

/** The look of a change of health, which stays when the next change comes. `blocked` alone has two looks: the reason says for what the session waits. */
export function lookOfChange({ health, pattern, reason }) {
  if (health !== 'blocked') return health;
  if (pattern === 'F6') return 'needs_input';
  const what = reason?.match(/^Waits for (.*)/s)?.[1];
  return what === undefined ? health : isForPerson(what) ? 'needs_input' : 'waiting';
}

/** What a person can do; `@` is where. */
const deeds = {
  needs_input: 'Answer @', your_turn: 'Go on @', looping: 'Tell it so @, or cancel it', stuck: 'Look @, or cancel it', silent: 'Look @',
  dead: 'Begin it again @', failed: 'Begin it again @', incomplete: 'Go on @',
};

/** What a person can do about a session, and where; empty: nothing, or it can be answered here. */
export function deedOf({ state, question, agent, directory, labels }) {
  if (question || !deeds[state]) return '';
  const place = ['hooks', 'transcript'].includes(labels?.via) ? 'in its terminal' : 'where it runs';
  const whose = [agent, directory && `in ${directory}`].filter(Boolean).join(' ');
  return deeds[state].replace('@', () => `${place}${whose && ` (${whose})`}`);
}

/** Word, icon and colour together. */
export function badge(word) {
  const node = el('span', { class: `health ${word}` }, el('span', { class: 'icon', 'aria-hidden': 'true' }),
                  el('span', {}, nameOf(word)));
  return node;
}

export function setBadge(node, word) {
  mark(node, 'class', `health ${word}`);
  put(node.lastChild, nameOf(word));
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
  working: 'is busy; its progress is not known', quiet: 'shows no activity', hung: 'hangs', restarted: 'was restarted',
  gone: 'is gone', unknown: 'has not been seen yet',
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
