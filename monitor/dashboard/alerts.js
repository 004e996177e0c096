// The alerts, the newest first, and the buttons that acknowledge or snooze them.

import { act } from './actions.js';
import { openAlerts, recoveryOf } from './alert.js';
import { find } from './api.js';
import { agoElement, now, spoken, timely } from './clock.js';
import { beside, el, isolated, linkTo, put } from './element.js';
import { badge } from './health.js';
import { onKey } from './keys.js';
import { connection, showChannels } from './top.js';

const refreshMs = 10000;
const pageSize = 100;
const hours = [['15 min', 15], ['1 h', 60], ['8 h', 480], ['24 h', 1440]];

let limit = pageSize;
const titles = new Map();
const ends = new Map();  // of sessions that ended badly: how, and why
let sessions = new Map();
const list = el('ol', { class: 'alerts all' });
const none = el('p', { class: 'none', hidden: true });
const note = el('p', { class: 'hint' });
const more = el('button', { type: 'button', hidden: true, onclick: () => { limit += pageSize; load(); } }, 'Older alerts');
const open = el('input', { type: 'checkbox', checked: true, onchange: () => load() });

const change = (alert, verb, path, body, answer) => act({
  title: `${verb}: ${titles.get(alert.sessionId) ?? alert.sessionId}`, verb, path: `/api/alerts/${alert.alertId}/${path}`, body, answer: () => answer,
  happens: path === 'snooze' ? 'No more alerts of this session until then.' : 'No more alerts of this trouble until it is over.', done: load });

/** An alert carries no error, which is content. The session has it. */
function reasonOf({ sessionId, health, reason }) {
  const end = ends.get(sessionId);
  return end?.state === health ? end.reason : reason;
}

/** Whose it is: titles of sessions may be equal. */
function whoseOf({ sessionId }) {
  const { agent, directory, shortId } = sessions.get(sessionId) ?? {};
  return [...[agent, directory].map(isolated), beside(shortId, titles.get(sessionId))].filter(Boolean).join(' · ');
}

function item(alert, isOpen) {
  const quiet = alert.snoozedUntil > now();
  const snooze = el('select', { 'aria-label': 'Snooze', onchange: () => {
    const minutes = Number(snooze.value);
    snooze.value = '';
    if (minutes > 0) change(alert, 'Snooze', 'snooze', { minutes }, `Quiet for ${spoken(minutes * 60000)}.`);
  } }, new Option('Snooze…', ''), ...hours.map(([name, minutes]) => new Option(name, minutes)));
  return el('li', { class: isOpen ? 'open' : null }, badge(alert.kind === 'recovery' ? 'recovered' : alert.health),
    el('div', {}, el('a', { href: linkTo(alert.sessionId) }, titles.get(alert.sessionId) ?? alert.sessionId), el('small', {}, whoseOf(alert))),
    el('span', { class: 'told' }, alert.kind === 'recovery' ? recoveryOf(alert) : timely(reasonOf(alert))), agoElement(alert.at),
    el('span', { class: 'buttons' }, ...(isOpen ? [
      el('button', { type: 'button', onclick: () => change(alert, 'Acknowledge', 'acknowledge', {}, 'It is acknowledged.') }, 'Acknowledge'), snooze] : [])),
    el('small', {}, [alert.acknowledged && `acknowledged by ${alert.acknowledged.by}`, quiet && `quiet for ${spoken(alert.snoozedUntil - now())}`,
                     ...alert.channels.map(({ name, state, error }) => `${name}: ${state}${error ? ` (${error})` : ''}`)].filter(Boolean).join(' · ')));
}

async function loadSessions() {
  const rows = await find('/api/autonomous/sessions?limit=10000').catch(() => null);
  sessions = new Map((rows?.sessions ?? []).map((row) => [row.sessionId, row]));
  for (const { sessionId, title, outcome, reason } of sessions.values()) {
    titles.set(sessionId, title);
    if (['failed', 'incomplete'].includes(outcome) && reason) ends.set(sessionId, { state: outcome, reason });
  }
}

async function load() {
  const page = await find(`/api/alerts?limit=${Math.min(limit, 1000)}`).catch(() => null);
  connection.is(page ? 'live' : 'lost');
  if (!page) return;
  const asking = new Set(openAlerts(page.alerts, (id) => sessions.get(id)));
  const alerts = open.checked ? [...asking] : page.alerts;
  list.replaceChildren(...alerts.map((alert) => item(alert, asking.has(alert))));
  more.hidden = page.next === null;
  none.hidden = alerts.length > 0;
  put(none, open.checked ? 'No alert is open.' : 'No alert yet.');
  put(note, page.channels.length === 0 ? 'No channel is set up: alerts are shown here only. See alerts.channels in the settings.'
    : `Alerts go to ${page.channels.map(({ name }) => name).join(', ')}.`);
}

export async function startAlerts(main) {
  main.replaceChildren(el('nav', { 'aria-label': 'Back' }, el('a', { href: '/', class: 'back' }, '← Sessions')),
    el('div', { class: 'title' }, el('h1', {}, 'Alerts'), note), el('div', { class: 'filters' }, el('label', {}, open, ' Only open ones')), list, none, more);
  onKey(['Escape'], 'back to the list', () => { location.href = '/'; });
  await loadSessions();
  await load();
  setInterval(async () => {
    if (document.hidden || connection.paused || document.querySelector('dialog[open], select:focus')) return;
    await loadSessions();
    load();
  }, refreshMs);
  showChannels(main);
}
