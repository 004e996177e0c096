// The list of sessions.

import { act, cancelSession } from './actions.js';
import { showRules } from './acts.js';
import { ago, heard, noticesOf, now, spoken, timely, wall } from './clock.js';
import { beside, el, isolated, linkTo, mark, put } from './element.js';
import { attentionNames, attentions, badge, deedOf, hasEnded, isTrouble, lifecycles, nameOf, needsYou, pace, serverBrief, setBadge, states } from './health.js';
import { onKey } from './keys.js';
import { find, get } from './api.js';
import { History, askWaits } from './history.js';
import { paleness, palette } from './paint.js';
import { questionDialog } from './question.js';
import { Rows, isFiltered, searchOf, wishFrom } from './rows.js';
import { announce, connection, showChannels, showCount } from './top.js';
import { Stream } from './stream.js';
import { Table } from './table.js';
import { Ways } from './ways.js';

const columns = [
  { key: 'session', name: 'Session' },
  { key: 'state', name: 'State' },
  { key: null, name: 'Why' },
  { key: null, name: 'Last 30 min' },
  { key: 'doing', name: 'Doing' },
  { key: 'tokens', name: 'Tokens · cost', number: true },
  { key: 'changed', name: 'Last change', number: true },
  { key: 'iteration', name: 'Iteration', number: true },
  { key: 'changes', name: 'Changes', number: true },
  { key: 'heard', name: 'Heartbeat', number: true },
];
const growMs = 10000;  // how often reasons that say how long are asked for again
const alertsMs = 10000;  // how often alerts are asked for: what somebody acknowledged needs nobody else
const orderMs = 1000;  // how often, at most, a long list is put in order

const stripMs = 30 * 60000;
const piecesShown = 12;  // of a row's bar, when the pointer rests on it
const growing = 'slow,suspect,silent';  // states whose reasons say how long
const past = new History();
const asksMax = 8;  // sessions that are asked at once for what they waited
let asking = false;
const rows = new Rows();
let wish = wishFrom(location.search);
let counts = rows.counts();
const ways = new Ways();
let table = null;
let shownCount = 0;

function makeRow() {
  const id = el('a', { class: 'id' });
  const about = el('span');
  const parent = el('a');
  const since = el('small');
  const reason = el('span', { class: 'why' });
  const message = el('small', { class: 'message' });
  const strip = el('canvas', { class: 'strip', role: 'img', onpointerenter: showStrip });
  const doing = el('span');
  const running = el('small');
  const health = badge('');
  const known = el('button', { type: 'button', class: 'known', onclick: ({ target }) => attend(target) });
  const cell = (...parts) => el('td', { role: 'cell' }, el('div', {}, ...parts));
  const counted = (label) => el('td', { role: 'cell', class: 'number', 'data-label': label });
  const [tokens, changed, iteration, changes, beat] = ['tokens', 'changed', 'iteration', 'changes', 'heartbeat'].map(counted);
  const row = el('tr', { role: 'row' },
    el('th', { scope: 'row', role: 'rowheader' }, el('div', {}, id, el('small', {}, about, parent))),
    cell(health, since), el('td', { role: 'cell' }, known, el('div', {}, reason, message)), el('td', { role: 'cell' }, strip), cell(doing, running), tokens, changed, iteration, changes, beat);
  row.parts = { known, id, about, parent, since, reason, message, strip, doing, running, health, tokens, iteration, changes, changed, beat };
  row.cellsOf = { session: [...row.cells], head: [el('th', { class: 'name', scope: 'rowgroup', role: 'rowheader' })] };
  row.kind = 'session';
  return row;
}

const brief = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Tokens, and the cost where it is known: `81K · 1.20`. */
const usage = ({ tokens, cost }) => [tokens > 0 && brief.format(tokens), cost > 0 && cost.toFixed(2)].filter(Boolean).join(' · ');

/** What stands under the reason: what is asked, what a person can do, what the session said last, or what it is for. */
function secondLine(row) {
  if (row.question) return beside(row.question.text, row.reason);
  const said = beside(row.lastMessage, row.reason);
  if (needsYou(row)) return said || deedOf(row);
  if (row.lastMessage) return said;
  if (row.tool?.command && !hasEnded(row)) return row.tool.command;
  return beside(row.task, row.title);
}

// All bars have one width: asking each would have the browser lay out the page for each.
let stripWidth = 0;
addEventListener('resize', () => { stripWidth = 0; });

/** The states of its last half hour, empty before its begin, so that the bars of all rows compare. */
function paintStrip(canvas, row, time) {
  const begin = time - stripMs;
  stripWidth ||= canvas.clientWidth;
  // A pixel's worth later it looks the same.
  const key = [row.sessionId, row.state, past.changesOf(row.sessionId).length, past.isVague(row), Math.floor(time / (stripMs / 100)), stripWidth, scheme.matches].join(' ');
  if (canvas.key === key || stripWidth === 0) return;
  canvas.key = key;
  canvas.width = stripWidth;
  canvas.height = 14;
  const pen = canvas.getContext('2d');
  const colour = palette();
  const pieces = past.pieces(row, begin, time);
  for (const { look, begin: from, end } of pieces) {
    pen.fillStyle = colour(look);
    pen.globalAlpha = paleness(look);
    // A short piece is seen, too, and ends where it ended.
    const right = (end - begin) / stripMs * stripWidth;
    pen.fillRect(Math.min((from - begin) / stripMs * stripWidth, right - 2), 0, Math.max(2, right - (from - begin) / stripMs * stripWidth), 14);
  }
  canvas.pieces = pieces;
  mark(canvas, 'aria-label', `Last ${spoken(stripMs)}: ${[...new Set(pieces.map(({ look }) => nameOf(look)))].join(', then ')}`);
}

/** In words, when the pointer comes. */
function showStrip({ target }) {
  mark(target, 'title', (target.pieces ?? []).slice(-piecesShown).map(({ look, begin, end }) => `${wall(begin)}  ${nameOf(look)} for ${spoken(end - begin)}`).join('\n'));
}

const scheme = matchMedia('(prefers-color-scheme: dark)');

/** A row shows a session, or the name of the group that begins there. */
function beKind(tr, kind) {
  if (tr.kind !== kind) tr.replaceChildren(...tr.cellsOf[kind]);
  tr.kind = kind;
}

// Columns that the width of the window allows.
let columnsShown = 0;
addEventListener('resize', () => { columnsShown = 0; });

function fillHead(tr, { attention, count }) {
  beKind(tr, 'head');
  columnsShown ||= page.heads.filter((head) => head.offsetWidth > 0).length;
  mark(tr.cells[0], 'colspan', columnsShown);
  mark(tr, 'class', `head ${attention}`);
  mark(tr, 'data-depth', null);
  put(tr.cells[0], `${attentionNames[attention] ?? attention} · ${count.toLocaleString()}`);
}

const stopButton = () => el('button', { type: 'button', class: 'stop', title: 'Cancel the session (c)', onclick: ({ target }) => cancel(target) }, 'Cancel');

/** Two buttons for all rows: the row that has the pointer gets one, and the row that has the focus. */
const stops = { pointerover: stopButton(), focusin: stopButton() };

function offerCancel({ type, target }) {
  const tr = target.closest('tbody tr');
  const row = rowOf(tr);
  const stop = stops[type];
  // A focused button stays where it is, and no row needs two.
  if (!row || document.activeElement === stop || tr.querySelector('.stop')) return;
  stop.hidden = hasEnded(row);
  tr.parts.known.after(stop);
}

function fillRow(tr, item) {
  if (!item.row) return fillHead(tr, item);
  const { row, depth } = item;
  for (const stop of Object.values(stops)) if (tr.contains(stop)) stop.hidden = hasEnded(row);
  const part = tr.parts;
  const time = now();
  beKind(tr, 'session');
  put(part.id, row.title);
  mark(part.id, 'href', linkTo(row.sessionId));
  mark(part.id, 'title', row.title === row.sessionId ? row.sessionId : `${row.title}\n${row.sessionId}`);
  mark(tr, 'data-depth', depth || null);
  mark(tr, 'class', `row-${row.attention}`);
  part.known.hidden = !row.question && (!needsYou(row) || !rows.alertOf(row));
  put(part.known, row.question ? 'Answer' : 'Acknowledge');
  part.known.classList.toggle('asks', Boolean(row.question));
  mark(part.known, 'title', row.question ? 'Answer what the agent asks (a)' : 'Acknowledge: it leaves “Needs you” (a)');
  const children = counts.children.get(row.sessionId);
  put(part.about, [...[row.agent, row.directory].map(isolated), beside(row.shortId, row.title), children && `${children} ${children === 1 ? 'child' : 'children'}`,
                   row.parentSessionId && 'child of '].filter(Boolean).join(' · '));
  const parent = row.parentSessionId && rows.all.get(row.parentSessionId);
  put(part.parent, parent ? parent.title : row.parentSessionId);
  mark(part.parent, 'href', row.parentSessionId && linkTo(row.parentSessionId));
  setBadge(part.health, row.state);
  put(part.since, hasEnded(row) ? ago(row.endedAt) : `for ${spoken(time - row.stateSince)}`);
  mark(part.since, 'title', wall(row.stateSince));
  const reason = [timely(row.reason), noticesOf(row)].filter(Boolean).join('. ');
  put(part.reason, reason);
  mark(part.reason, 'title', reason || null);
  const below = !hasEnded(row) && !needsYou(row) && counts.troubled.get(row.sessionId);
  const more = below ? `Below it: ${below.title} (${nameOf(below.state)})` : secondLine(row);
  put(part.message, more);
  mark(part.message, 'class', below ? `message ${below.state}` : 'message');
  mark(part.message, 'title', more || null);
  paintStrip(part.strip, row, time);
  put(part.doing, row.currentPhase ?? '');
  // A call that waits for a person does not run.
  if (row.tool && !hasEnded(row) && !['dead', 'needs_input'].includes(row.state)) {
    const elapsed = time - row.tool.startedAt;
    put(part.running, `${row.tool.name || 'a tool'} ${spoken(elapsed)}`);
    mark(part.running, 'class', `pace ${pace(elapsed)}`);
  } else {
    put(part.running, row.cancelling && !hasEnded(row) ? 'asked to stop' : serverBrief(row.server));
    mark(part.running, 'class', null);
  }
  put(part.tokens, usage(row));
  put(part.iteration, row.iteration ?? '');
  put(part.changes, row.stateChanges ?? '');
  put(part.changed, row.lastChangeAt ? ago(row.lastChangeAt) : '');
  put(part.beat, row.lastHeartbeatAt ? ago(row.lastHeartbeatAt) : '');
}

/** The buttons, fields and the table's head; what they change is in `wish`. */
function build(main) {
  const summary = el('p', { id: 'summary' });
  const chip = (word, chosen, attributes, ...parts) =>
    el('button', { type: 'button', ...attributes, onclick: () => {
      wish[chosen].delete(word) || wish[chosen].add(word);
      changed();
    } }, ...parts, el('b'));
  const groups = el('div', { class: 'chips groups', role: 'group', 'aria-label': 'Attention' },
    ...attentions.map((word) => chip(word, 'attentions', { class: `attention ${word}`, 'data-attention': word }, el('span', {}, attentionNames[word]))));
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'States' },
    ...states.map((word) => chip(word, 'states', { 'data-state': word }, badge(word))));
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
  const fewer = el('button', { type: 'button', class: 'plain fewer', 'aria-expanded': 'false', onclick: () => {
    const isOpen = filters.classList.toggle('open');
    fewer.setAttribute('aria-expanded', isOpen);
  } }, 'Filters');
  const filters = el('div', { class: 'filters' }, search, fewer, lifecycle, agent, el('label', {}, together, ' Group by parent'), clear);
  const sessions = el('table', { class: 'sessions', role: 'table', tabindex: '-1', 'aria-label': 'Sessions' },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row', 'aria-rowindex': '1' }, ...heads)),
    el('tbody', { role: 'rowgroup', onpointerover: offerCancel, onfocusin: offerCancel }));
  const title = el('h1', { id: 'title' });
  const none = el('p', { class: 'none', hidden: true });
  main.replaceChildren(
    el('div', { class: 'title' }, title, summary), el('div', { class: 'bar' }, groups, filters), chips,
    ways.node, sessions, none);
  table = new Table(sessions, { make: makeRow, fill: fillRow });
  return { title, summary, chips: [...groups.children, ...chips.children], search, lifecycle, agent, together, clear, heads, none, sessions };
}

let page = null;

/** Shows in the controls what is asked for, and what there is. */
function showControls() {
  counts = rows.counts();
  const total = rows.all.size;
  const shown = shownCount;
  const { needed } = counts;
  put(page.title, total === 0 ? 'No sessions yet' : needed > 0 ? `${needed.toLocaleString()} ${needed === 1 ? 'session needs' : 'sessions need'} you` : 'No session needs you');
  mark(page.title, 'class', needed > 0 ? 'needed' : null);
  put(page.summary, `${total.toLocaleString()} ${total === 1 ? 'session' : 'sessions'}` +
    `${shown === total ? '' : `, ${shown.toLocaleString()} shown`}`);
  showCount(needed);
  for (const chip of page.chips) {
    const { attention, state } = chip.dataset;
    const count = counts.words.get(attention ?? state) ?? 0;
    const pressed = attention ? wish.attentions.has(attention) : wish.states.has(state);
    put(chip.lastChild, count.toLocaleString());
    mark(chip, 'aria-pressed', pressed);
    chip.classList.toggle('empty', count === 0);
    // Monitors that know no such state get no button for it.
    if (attention === 'ready') chip.hidden = count === 0 && !pressed;
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
  page.clear.hidden = !isFiltered(wish);
  for (const head of page.heads) {
    const sorted = head.dataset.key === wish.sort;
    mark(head, 'aria-sort', sorted ? (wish.descending ? 'descending' : 'ascending') : null);
  }
  page.none.hidden = shown > 0 || page.main.hasAttribute('aria-busy');
  put(page.none, total > 0 ? 'No session matches these filters.' : '');
  if (!page.main.hasAttribute('aria-busy')) ways.show(rows.all);
  page.main.classList.toggle('empty', total === 0 && !page.main.hasAttribute('aria-busy'));  // nothing to filter
}

function order() {
  ordered = performance.now();
  const { items, heads, count } = rows.grouped(wish);
  shownCount = count;
  table.show(items, heads);
  showControls();
}

function changed() {
  history.replaceState(history.state, '', location.pathname + searchOf(wish));
  order();
}

// A short list shows its changes almost at once, a long list a little later.
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

function onRecord(name, data) {
  if (name === 'snapshot') {
    heard(data.now);
    rows.snapshot(data.sessions, data.complete);
    if (data.complete) connection.settled = true;
    if (connection.paused) return;
    if (data.complete) mark(page.main, 'aria-busy', null);
    if (data.complete || rows.all.size <= 1000) order();
    if (data.complete) restore();
    if (data.complete) loadPast();
    if (data.complete) loadAlerts();
  } else if (name === 'session') {
    heard(data.now);
    const before = rows.all.get(data.sessionId);
    rows.set(data);
    // Trouble is announced with its transition.
    if (needsYou(data) && !(before && needsYou(before)) && !isTrouble(data.state)) announce(data.sessionId, data.title, data.state, data.reason);
    renew();
  } else if (name === 'transition') {
    past.add(data);
    if (!isTrouble(data.health)) return;
    announce(data.sessionId, rows.all.get(data.sessionId)?.title ?? data.sessionId, data.health, data.reason);
  }
}

/** The changes of the last half hour, once: the rows come first. */
function loadPast() {
  if (past.since > 0) return;
  get(`/api/autonomous/history?minutes=${stripMs / 60000}`).then((given) => { past.fill(given); table.draw(); }).catch(() => {});
}

/** For what the sessions in sight waited: the bars of their last half hour keep its colour. */
async function askForWaits() {
  if (asking || past.since === 0 || document.hidden || connection.state !== 'live') return;
  asking = true;
  await askWaits(past, table.shown().flatMap(({ row }) => row ?? []), find, asksMax).catch(() => {});
  asking = false;
}

/** What people acknowledged, here or elsewhere. */
async function loadAlerts() {
  const page = await find('/api/alerts?limit=1000').catch(() => null);
  if (page && rows.setAlerts(page.alerts, now()) && !connection.paused) order();
  else if (page) table.draw();
}

/** The session of the row in which this is; undefined: it is in none. */
const rowOf = (node) => table.items[table.indexOf(node?.closest('tr'))]?.row;

/** Asks whether to cancel the session of the row in which this is. */
function cancel(node) {
  const row = rowOf(node);
  if (row && !hasEnded(row)) cancelSession(row.sessionId, row.title);
}

/** Answers the session of the row in which this is, or says that somebody looks after it. */
function attend(node) {
  const row = rowOf(node);
  if (row?.question) return questionDialog(row);
  const alert = row && needsYou(row) && rows.alertOf(row);
  if (!alert) return;
  act({ title: `Acknowledge: ${row.title}`, happens: 'It leaves “Needs you”. No more alerts of this trouble until it is over.', verb: 'Acknowledge',
        path: `/api/alerts/${alert.alertId}/acknowledge`, answer: () => 'It is acknowledged.', done: loadAlerts });
}

const placeKey = () => `scroll ${location.pathname}${location.search}`;

/** Back from a session the list is where it was. */
function restore() {
  const place = sessionStorage.getItem(placeKey());
  if (!place) return;
  sessionStorage.removeItem(placeKey());
  const { top, id } = JSON.parse(place);
  scrollTo({ top });
  const at = table.items.findIndex(({ row }) => row?.sessionId === id);
  if (at >= 0) step(() => at);
}

/** Moves the focus from the session that has it to the one that `from` says. */
function step(from) {
  if (table.items.length === 0) return;
  const focused = document.activeElement?.closest('tr');
  const at = focused ? table.indexOf(focused) : -1;
  let next = Math.max(0, Math.min(from(at), table.items.length - 1));
  // A heading is passed over in the same direction. Nothing comes before the first session.
  if (!table.items[next].row) next += next > at || next === 0 ? 1 : -1;
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
    const focused = document.activeElement?.closest('tr');
    const id = focused ? table.items[table.indexOf(focused)]?.row?.sessionId : undefined;
    sessionStorage.setItem(placeKey(), JSON.stringify({ top: scrollY, id }));
  });
  addEventListener('popstate', () => { wish = wishFrom(location.search); order(); });
  onKey(['/'], 'search', () => page.search.focus());
  onKey(['j', 'ArrowDown'], 'next session', () => step((at) => at + 1));
  onKey(['k', 'ArrowUp'], 'session before', () => step((at) => at - 1));
  onKey(['Enter'], 'open the session', () => false);
  onKey(['a'], 'answer or acknowledge the session', () => attend(document.activeElement));
  onKey(['c'], 'cancel the session', () => cancel(document.activeElement));
  onKey(['Escape'], 'clear the search', () => {
    if (document.activeElement === page.search && !wish.text) page.search.blur();
    wish.text = '';
    changed();
  });
  connection.onresume = order;
  setInterval(() => {
    if (connection.paused) return;
    table.draw();
    askForWaits();
  }, 1000);
  setInterval(async () => {
    if (document.hidden || connection.paused || connection.state !== 'live') return;
    const fresh = await get(`/api/autonomous/sessions?state=${growing}&sort=attention&limit=200`).catch(() => null);
    for (const row of fresh?.sessions ?? []) rows.set(row);
    if (fresh?.sessions.length > 0) renew();
  }, growMs);
  setInterval(() => {
    if (!document.hidden && !connection.paused && connection.state === 'live') loadAlerts();
  }, alertsMs);
  new Stream('/api/autonomous/stream?include=sessions,transitions', { record: onRecord, state: connection.is });
  showChannels(main);
  showRules(main);
}
