// The bar above all pages. It shows if the page is live and who is logged in, and it freezes the
// page. It also speaks to people who do not see the page.

import { access, find, get, logOut, may, onAccess } from './api.js';
import { logInDialog } from './actions.js';
import { agoElement, now, spoken, tick, timely, wall } from './clock.js';
import { el, mark, put } from './element.js';
import { nameOf } from './health.js';
import { onKey, showKeys } from './keys.js';
import { notify, notifyButton } from './notify.js';

const announceMs = 5000;  // between two announcements

const icon = el('span', { class: 'icon', 'aria-hidden': 'true' });
const word = el('span', { role: 'status' });  // alone: how long ago is not to be read out every second
const since = el('span', { class: 'since' });
const live = el('p', { id: 'live' }, icon, word, since);
const pauseButton = el('button', { type: 'button', class: 'plain', id: 'pause', 'aria-pressed': 'false',
                                   title: 'Freeze this page (p). Agents and alerts go on.', onclick: () => connection.pause() }, 'Freeze');
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
    if (connection.paused) return show('paused', 'Frozen', connection.pausedAt);
    if (state === 'live') return show('live', 'Live');
    if (state === 'refused') return show('lost', connection.status === 404 ? 'No live updates here' : 'Not allowed; log in');
    if (lostAt !== null && state !== 'resting') return show('lost', 'Disconnected', lostAt);
    return show('connecting', 'Connecting');
  },

  pause() {
    connection.paused = !connection.paused;
    connection.pausedAt = now();
    pauseButton.setAttribute('aria-pressed', connection.paused);
    pauseButton.textContent = connection.paused ? 'Resume' : 'Freeze';
    connection.show();
    if (!connection.paused) connection.onresume();
  },
};

let waiting = [];
let announced = -announceMs;
let timer = null;

/** Reports a session that needs somebody; several at once in one sentence. */
export function announce(session, title, state, reason) {
  notify({ session, title, state, reason });
  waiting.push({ title, state, reason });
  timer ??= setTimeout(() => {
    timer = null;
    announced = performance.now();
    const [first] = waiting;
    put(said, waiting.length === 1 ? `${first.title}: ${nameOf(first.state)}: ${timely(first.reason)}`
      : `${waiting.length} sessions need you: ` +
        [...new Set(waiting.map((one) => `${one.title} ${nameOf(one.state)}`))].slice(0, 5).join(', '));
    waiting = [];
  }, Math.max(100, announced + announceMs - performance.now()));
}

const favicon = document.querySelector('link[rel=icon]');
const calm = favicon?.getAttribute('href');

/** How many sessions need somebody: in the tab, where the page is not looked at. */
export function showCount(needed) {
  document.title = needed > 0 ? `(${needed}) Watchdog` : 'Watchdog';
  if (favicon) mark(favicon, 'href', needed > 0 ? calm.replace('icon.svg', `count-${Math.min(needed, 100)}.svg`) : calm);
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
  for (const link of document.querySelectorAll('.pages a'))
    mark(link, 'aria-current', link.pathname === location.pathname ? 'page' : null);
  document.getElementById('top').replaceChildren(live, pauseButton,
    el('button', { type: 'button', class: 'plain', 'aria-label': 'Keys', title: 'Keys (?)', onclick: showKeys }, '?'), ...notifyButton(), account);
  document.body.append(said);
  showAccount();
  onAccess(showAccount);
  onKey(['p'], 'freeze the page, or let it go on', () => connection.pause());
  setInterval(() => { if (!connection.paused) tick(); else tick(live); }, 1000);
  showMonitor(document.getElementById('main'));
}

const leaseTroubles = {
  late: 'This monitor cannot renew its leases in time; it tries again.',
  ended: 'The leases of this monitor ended. Other monitors judge its sessions until it is back.',
};

/** Of several monitors on one database: what this one judges, and what is wrong with it. */
async function showMonitor(main) {
  const trouble = el('p', { class: 'warning', id: 'monitor-trouble', role: 'status', hidden: true });
  const share = el('footer', { class: 'share', id: 'monitor-share', hidden: true });
  main.before(trouble);
  main.after(share);
  const look = async () => {
    const [ready, refusal] = await get('/readyz').then((answer) => [answer, null], (error) => [null, error]);
    const is = ready?.shards !== undefined;
    if (is) {
      put(share, `This monitor judges ${ready.shards} of 256 parts of all sessions${ready.held ? `: ${ready.held}` : ''}. ` +
        (ready.monitors === 1 ? 'It is the only one.' : `${ready.monitors} monitors share the database.`));
    }
    share.hidden = !is;
    const text = refusal?.status === 503 ? refusal.message : leaseTroubles[ready?.lease] ?? '';
    trouble.hidden = text === '';
    put(trouble, text);
    return is || refusal?.status === 503;
  };
  if (await look()) setInterval(() => { if (!document.hidden) look(); }, 5000);
}

const unsentMs = 60000;  // an alert that waits longer is said to wait

/** What is wrong with a channel, in a sentence; empty: nothing is. A service that does not answer at all fails late. */
function troubleOf({ name, state, error, oldestUnsentMs }) {
  if (state !== 'ok') return `Alerts by ${name} do not get through (${state}${error ? `: ${error}` : ''}).`;
  return oldestUnsentMs > unsentMs ? `The oldest alert by ${name} has been waiting for ${spoken(oldestUnsentMs)}.` : '';
}

/** Says so where alerts do not get through. */
export async function showChannels(main) {
  const note = el('p', { class: 'warning', role: 'status', hidden: true });
  main.prepend(note);
  const look = async () => {
    const alerts = await find('/api/alerts?limit=1').catch(() => null);
    if (!alerts) return false;
    const broken = alerts.channels.map(troubleOf).filter(Boolean);
    note.hidden = broken.length === 0;
    put(note, broken.join(' '));
    return true;
  };
  if (await look()) setInterval(() => { if (!document.hidden) look(); }, 60000);
}
