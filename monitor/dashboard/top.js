// The bar above both pages: whether what is shown is live, pausing it, who is logged in; and what is
// said to those who do not see the page.

import { access, find, logOut, may } from './api.js';
import { logInDialog } from './actions.js';
import { agoElement, now, tick, wall } from './clock.js';
import { el, put } from './element.js';
import { onKey, showKeys } from './keys.js';

const announceMs = 5000;  // between two announcements

const icon = el('span', { class: 'icon', 'aria-hidden': 'true' });
const word = el('span', { role: 'status' });  // alone: how long ago is not to be read out every second
const since = el('span', { class: 'since' });
const live = el('p', { id: 'live' }, icon, word, since);
const pauseButton = el('button', { type: 'button', id: 'pause', 'aria-pressed': 'false', onclick: () => connection.pause() },
                       'Pause');
const account = el('span', { id: 'account' });
const said = el('p', { class: 'unseen', id: 'said', 'aria-live': 'polite' });

function show(look, text, time = null) {
  live.className = look;
  put(word, text);
  since.replaceChildren(...(time === null ? [] : [` since ${wall(time)} (`, agoElement(time), ')']));
}

/** Whether what is shown is live. */
export const connection = {
  paused: false,
  onresume: () => {},
  lostAt: null,

  /** What a stream says of itself. */
  is(state, status) {
    if (state === 'live') connection.lostAt = null;
    else if (state !== 'connecting') connection.lostAt ??= now();
    connection.state = state;
    connection.status = status;
    connection.show();
  },

  show() {
    const { state, lostAt } = connection;
    if (connection.paused) return show('paused', 'Paused', connection.pausedAt);
    if (state === 'live') return show('live', 'Live');
    if (state === 'refused') return show('lost', connection.status === 404 ? 'No live updates here' : 'Not allowed; log in');
    if (lostAt !== null && state !== 'resting') return show('lost', 'Disconnected', lostAt);
    return show('connecting', 'Connecting');
  },

  pause() {
    connection.paused = !connection.paused;
    connection.pausedAt = now();
    pauseButton.setAttribute('aria-pressed', connection.paused);
    pauseButton.textContent = connection.paused ? 'Resume' : 'Pause';
    connection.show();
    if (!connection.paused) connection.onresume();
  },
};

let waiting = [];
let announced = -announceMs;
let timer = null;

/** Tells of a session in trouble; several at once in one sentence. */
export function announce(transition) {
  waiting.push(transition);
  timer ??= setTimeout(() => {
    timer = null;
    announced = performance.now();
    const [first] = waiting;
    put(said, waiting.length === 1 ? `${first.sessionId} is ${first.health}: ${first.reason}`
      : `${waiting.length} changes into trouble: ` +
        [...new Set(waiting.map((one) => `${one.sessionId} ${one.health}`))].slice(0, 5).join(', '));
    waiting = [];
  }, Math.max(100, announced + announceMs - performance.now()));
}

function showAccount() {
  const { name, tokenNeeded } = access();
  if (may('act') && !(name || tokenNeeded)) return account.replaceChildren();
  if (name) {
    return account.replaceChildren(el('button', { type: 'button', class: 'plain', title: `Logged in as ${name}`,
      onclick: async () => { await logOut(); location.reload(); } }, 'Log out'));
  }
  if (may('act')) return account.replaceChildren();
  return account.replaceChildren(el('button', { type: 'button', class: 'plain', onclick: async () => {
    if (await logInDialog()) location.reload();
  } }, 'Log in'));
}

export function buildTop() {
  document.getElementById('top').replaceChildren(live, pauseButton,
    el('button', { type: 'button', class: 'plain', 'aria-label': 'Keys', title: 'Keys (?)', onclick: showKeys }, '?'), account);
  document.body.append(said);
  showAccount();
  onKey(['p'], 'pause or resume live updates', () => connection.pause());
  setInterval(() => { if (!connection.paused) tick(); else tick(live); }, 1000);
}

/** Says so where alerts do not get through. */
export async function showChannels(main) {
  const note = el('p', { class: 'warning', role: 'status', hidden: true });
  main.prepend(note);
  const look = async () => {
    const alerts = await find('/api/alerts?limit=1').catch(() => null);
    if (!alerts) return false;
    const broken = alerts.channels.filter(({ state }) => state !== 'ok');
    note.hidden = broken.length === 0;
    put(note, broken.map(({ name, state, error }) =>
      `Alerts by ${name} do not get through (${state}${error ? `: ${error}` : ''}).`).join(' '));
    return true;
  };
  if (await look()) setInterval(() => { if (!document.hidden) look(); }, 60000);
}
