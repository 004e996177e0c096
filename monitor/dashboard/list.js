// The list of sessions.

import { ago, heard, now, spoken, wall } from './clock.js';
import { el, linkTo, mark, put } from './element.js';
import { badge, hasEnded, healths, isTrouble, lifecycles, pace, serverBrief, setBadge, wordOf } from './health.js';
import { onKey } from './keys.js';
import { Rows, searchOf, wishFrom } from './rows.js';
import { announce, connection, showChannels } from './top.js';
import { Stream } from './stream.js';
import { Table } from './table.js';

const columns = [
  { key: 'session', name: 'Session' },
  { key: 'health', name: 'Health' },
  { key: null, name: 'Why' },
  { key: 'doing', name: 'Doing' },
  { key: 'iteration', name: 'Iteration', number: true },
  { key: 'changes', name: 'Changes', number: true },
  { key: 'changed', name: 'Last change', number: true },
  { key: 'heard', name: 'Heartbeat', number: true },
];
const orderMs = 1000;  // a long list is put in order at most so often

const rows = new Rows();
let wish = wishFrom(location.search);
let counts = rows.counts();
let table = null;

function makeRow() {
  const id = el('a', { class: 'id' });
  const about = el('span');
  const parent = el('a');
  const since = el('small');
  const reason = el('span');
  const task = el('small');
  const doing = el('span');
  const running = el('small');
  const health = badge('');
  const cell = (...parts) => el('td', { role: 'cell' }, el('div', {}, ...parts));
  const counted = (label) => el('td', { role: 'cell', class: 'number', 'data-label': label });
  const [iteration, changes, changed, beat] = ['iteration', 'changes', 'changed', 'heartbeat'].map(counted);
  const row = el('tr', { role: 'row' },
    el('th', { scope: 'row', role: 'rowheader' }, el('div', {}, id, el('small', {}, about, parent))),
    cell(health, since), cell(reason, task), cell(doing, running), iteration, changes, changed, beat);
  row.parts = { id, about, parent, since, reason, task, doing, running, health, iteration, changes, changed, beat };
  return row;
}

function fillRow(tr, { row, depth }) {
  const part = tr.parts;
  const time = now();
  put(part.id, row.sessionId);
  mark(part.id, 'href', linkTo(row.sessionId));
  mark(tr, 'data-depth', depth || null);
  const children = counts.children.get(row.sessionId);
  put(part.about, [row.agent, children && `${children} ${children === 1 ? 'child' : 'children'}`,
                   row.parentSessionId && 'child of '].filter(Boolean).join(' · '));
  put(part.parent, row.parentSessionId);
  mark(part.parent, 'href', row.parentSessionId && linkTo(row.parentSessionId));
  setBadge(part.health, wordOf(row));
  put(part.since, hasEnded(row) ? ago(row.endedAt) : `for ${spoken(time - row.healthSince)}`);
  const reason = row.reason ?? (row.health === 'unknown' && !hasEnded(row) ? 'it has not reported anything yet' : '');
  put(part.reason, reason);
  mark(part.reason, 'title', reason || null);
  put(part.task, row.task);
  put(part.doing, row.currentPhase ?? (row.lifecycle === 'running' ? '' : row.lifecycle));
  if (row.tool && !hasEnded(row)) {
    const elapsed = time - row.tool.startedAt;
    put(part.running, `${row.tool.name || 'a tool'} ${spoken(elapsed)}`);
    mark(part.running, 'class', `pace ${pace(elapsed)}`);
  } else {
    put(part.running, row.cancelling && !hasEnded(row) ? 'asked to stop' : serverBrief(row.server));
    mark(part.running, 'class', null);
  }
  put(part.iteration, row.iteration ?? '–');
  put(part.changes, row.stateChanges ?? '–');
  put(part.changed, ago(row.lastChangeAt));
  put(part.beat, ago(row.lastHeartbeatAt));
}

/** The buttons, fields and the table's head; what they change is in `wish`. */
function build(main) {
  const summary = el('p', { id: 'summary' });
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'Healths to show' },
    ...healths.map((health) => {
      const chip = el('button', { type: 'button', 'data-health': health, onclick: () => {
        wish.healths.delete(health) || wish.healths.add(health);
        changed();
      } }, badge(health), el('b'));
      return chip;
    }));
  const search = el('input', { type: 'search', id: 'search', placeholder: 'Search', 'aria-label': 'Search sessions',
    'aria-keyshortcuts': '/', autocomplete: 'off', spellcheck: 'false',
    oninput: () => { wish.text = search.value; changed(); } });
  const choice = (label, name) => {
    const select = el('select', { 'aria-label': label, onchange: () => { wish[name] = select.value; changed(); } });
    return select;
  };
  const lifecycle = choice('Lifecycle', 'lifecycle');
  lifecycle.append(new Option('All lifecycles', ''), new Option('not ended', 'open'),
                   ...lifecycles.map((word) => new Option(word, word)));
  const agent = choice('Agent', 'agent');
  const together = el('input', { type: 'checkbox', onchange: () => { wish.families = together.checked; changed(); } });
  const clear = el('button', { type: 'button', class: 'plain', onclick: () => {
    wish = { ...wishFrom(''), sort: wish.sort, descending: wish.descending };
    changed();
    search.focus();
  } }, 'Clear filters');
  const heads = columns.map(({ key, name, number }) => {
    const attributes = { scope: 'col', role: 'columnheader', class: number ? 'number' : null };
    if (!key) return el('th', attributes, name);
    const sign = el('span', { class: 'sort', 'aria-hidden': 'true' });
    return el('th', { ...attributes, 'data-key': key }, el('button', { type: 'button', onclick: () => {
      wish.descending = wish.sort === key && !wish.descending;
      wish.sort = key;
      changed();
    } }, ...(number ? [sign, name] : [name, sign])));
  });
  const sessions = el('table', { class: 'sessions', role: 'table', tabindex: '-1', 'aria-labelledby': 'title' },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row', 'aria-rowindex': '1' }, ...heads)),
    el('tbody', { role: 'rowgroup' }));
  const none = el('p', { class: 'none', hidden: true });
  main.replaceChildren(
    el('div', { class: 'title' }, el('h1', { id: 'title' }, 'Sessions'), summary), chips,
    el('div', { class: 'filters' }, search, lifecycle, agent,
       el('label', {}, together, ' Families together'), clear),
    sessions, none);
  table = new Table(sessions, { make: makeRow, fill: fillRow });
  return { summary, chips, search, lifecycle, agent, together, clear, heads, none };
}

let page = null;

/** Shows in the controls what is asked for, and what there is. */
function showControls() {
  counts = rows.counts();
  const total = rows.all.size;
  const shown = table.items.length;
  put(page.summary, `${total.toLocaleString()} ${total === 1 ? 'session' : 'sessions'}` +
    `${shown === total ? '' : `, ${shown.toLocaleString()} shown`}, ${counts.trouble.toLocaleString()} in trouble`);
  document.title = counts.trouble > 0 ? `(${counts.trouble}) Watchdog` : 'Watchdog';
  for (const chip of page.chips.children) {
    const { health } = chip.dataset;
    put(chip.lastChild, (counts.words.get(health) ?? 0).toLocaleString());
    mark(chip, 'aria-pressed', wish.healths.has(health));
    chip.classList.toggle('empty', !counts.words.get(health));
  }
  if (page.search.value !== wish.text) page.search.value = wish.text;
  page.lifecycle.value = wish.lifecycle;
  page.together.checked = wish.families;
  const agents = counts.agents.slice(0, 200);
  if (wish.agent && !agents.includes(wish.agent)) agents.push(wish.agent);
  const known = [...page.agent.options].slice(1).map((option) => option.value);
  if (page.agent.options.length === 0 || known.join('\n') !== agents.join('\n'))
    page.agent.replaceChildren(new Option('All agents', ''), ...agents.map((name) => new Option(name, name)));
  page.agent.value = wish.agent;
  page.clear.hidden = !(wish.text || wish.healths.size || wish.lifecycle || wish.agent);
  for (const head of page.heads) {
    const sorted = head.dataset.key === wish.sort;
    mark(head, 'aria-sort', sorted ? (wish.descending ? 'descending' : 'ascending') : null);
  }
  page.none.hidden = shown > 0 || page.main.hasAttribute('aria-busy');
  put(page.none, total > 0 ? 'No session matches these filters.' : 'Nothing has reported yet.');
}

function order() {
  ordered = performance.now();
  table.show(rows.shown(wish));
  showControls();
}

function changed() {
  history.replaceState(history.state, '', location.pathname + searchOf(wish));
  order();
}

// What changed is shown at once where that is cheap, else a little later.
let ordered = 0;
let planned = false;

function renew() {
  if (planned || connection.paused) return;
  planned = true;
  const patience = rows.all.size > 500 ? orderMs : 100;
  setTimeout(() => {
    planned = false;
    if (!connection.paused) order();
  }, Math.max(0, ordered + patience - performance.now()));
}

function take(name, data) {
  if (name === 'snapshot') {
    heard(data.now);
    rows.snapshot(data.sessions, data.complete);
    if (data.complete) connection.settled = true;
    if (connection.paused) return;
    if (data.complete) mark(page.main, 'aria-busy', null);
    if (data.complete || rows.all.size <= 500) order();
    if (data.complete) restore();
  } else if (name === 'session') {
    heard(data.now);
    rows.set(data);
    renew();
  } else if (name === 'transition' && isTrouble(data.health)) {
    announce(data);
  }
}

const placeKey = () => `scroll ${location.pathname}${location.search}`;

/** Back from a session the list is where it was. */
function restore() {
  const place = sessionStorage.getItem(placeKey());
  if (!place) return;
  sessionStorage.removeItem(placeKey());
  const { top, id } = JSON.parse(place);
  scrollTo({ top });
  const at = table.items.findIndex(({ row }) => row.sessionId === id);
  if (at >= 0) step(() => at);
}

/** Moves the focus from the session that has it to the one that `from` says. */
function step(from) {
  if (table.items.length === 0) return;
  const focused = document.activeElement?.closest('tr');
  const at = focused ? table.indexOf(focused) : -1;
  const next = Math.max(0, Math.min(from(at), table.items.length - 1));
  table.reveal(next);
  table.rowAt(next)?.parts.id.focus({ preventScroll: true });
}

export function startList(main) {
  page = build(main);
  page.main = main;
  mark(main, 'aria-busy', true);
  showControls();
  table.show([]);
  history.scrollRestoration = 'manual';
  addEventListener('pagehide', () => {
    sessionStorage.setItem('list', location.pathname + location.search);
    const focused = document.activeElement?.closest('tr')?.parts?.id.textContent;
    sessionStorage.setItem(placeKey(), JSON.stringify({ top: scrollY, id: focused }));
  });
  addEventListener('popstate', () => { wish = wishFrom(location.search); order(); });
  onKey(['/'], 'search', () => page.search.focus());
  onKey(['j', 'ArrowDown'], 'next session', () => step((at) => at + 1));
  onKey(['k', 'ArrowUp'], 'session before', () => step((at) => at - 1));
  onKey(['Enter'], 'open the session', () => false);
  onKey(['Escape'], 'clear the search', () => {
    if (document.activeElement === page.search && !wish.text) page.search.blur();
    wish.text = '';
    changed();
  });
  connection.onresume = order;
  setInterval(() => {
    if (!connection.paused) table.draw();
  }, 1000);
  new Stream('/api/autonomous/stream?include=sessions,transitions', { record: take, state: connection.is });
  showChannels(main);
}
