// One session: how it is, why, what it does, and what can be done about it.

import { abortTool, abortTurn, acknowledge, askForCheck, cancelSession, snooze } from './actions.js';
import { Acts, isAct } from './acts.js';
import { openAlerts, recoveryOf } from './alert.js';
import { find, get } from './api.js';
import { agoElement, heard, noticesOf, now, spoken, timely, waitOf } from './clock.js';
import { el, linkTo, mark, put } from './element.js';
import { Events, verdictOf } from './events.js';
import { badge, deedOf, hasEnded, nameOf, pace, serverSaid, setBadge } from './health.js';
import { onKey } from './keys.js';
import { fillQuestion } from './question.js';
import { Stream } from './stream.js';
import { Activity } from './activity.js';
import { Timeline, atWall } from './timeline.js';
import { roundDetails } from './round.js';
import { families } from './rows.js';
import { announce, connection } from './top.js';

const id = decodeURIComponent(location.pathname.split('/').at(-1));
const own = `/api/autonomous/sessions/${encodeURIComponent(id)}`;
const refreshMs = 10000;  // of what no stream tells: children, alerts, what came of acts
const actMs = 500;  // from the event of an act to its entry

let shown = null;
let transitions = [];
let begin = null;
const opinions = new Map();

/** A section that is there only while it has something to show. */
function section(name, ...parts) {
  const node = el('section', { hidden: true, 'aria-label': name }, el('h2', {}, name), ...parts);
  return node;
}

const parts = {
  health: badge('unknown'),
  title: el('h1', { class: 'name' }, id),
  since: el('span'),
  reason: el('p', { class: 'reason' }),
  culprit: el('p', { hidden: true }),
  notices: el('p', { class: 'notices', hidden: true }),
  server: el('p', { class: 'server', hidden: true }),
  outcome: el('p', { class: 'notice', hidden: true }),
  cancel: el('p', { class: 'notice', hidden: true }),
  about: el('div', { class: 'about' }),
  deed: el('p', { class: 'notice', hidden: true }),
  said: el('blockquote', { class: 'said', hidden: true }),
  labels: el('ul', { class: 'labels', 'aria-label': 'Labels' }),
  facts: el('dl', { class: 'facts' }),
  evidence: el('ul', { class: 'evidence' }),
  running: el('ul', { class: 'running' }),
  budget: el('div', { class: 'budget' }),
  opinions: el('ul', { class: 'opinions' }),
  children: el('ul', { class: 'children' }),
  alerts: el('ul', { class: 'alerts' }),
};
const sections = {
  evidence: section('Evidence', parts.evidence),
  running: section('Running', parts.running),
  budget: section('Budget', parts.budget),
  opinions: section('Model checks', parts.opinions),
  children: section('Children', parts.children),
  alerts: section('Alerts', parts.alerts),
};
const question = section('Your answer', el('div', { class: 'question' }));
let asked = '';  // the id of the question that is shown
const timeline = new Timeline();
const events = new Events(id);
const activity = new Activity(id, (seq) => events.reveal(seq));
const acts = new Acts(id);
const check = el('button', { type: 'button', onclick: () => askForCheck(id, shown?.title) }, 'Ask for a check');
const save = el('button', { type: 'button', onclick: () => el('a', { href: `${own}/bundle`, download: '' }).click() }, 'Save the evidence');
const stop = el('button', { type: 'button', class: 'harm', onclick: () => cancelSession(id, shown?.title) }, 'Cancel session');

function fillList(name, items) {
  parts[name].replaceChildren(...items);
  sections[name].hidden = items.length === 0;
}

/** What runs ticks: its elements stay as long as it runs, so that a focused button stays too. */
const running = new Map();
function showRunning(session) {
  const wanted = new Map();
  for (const turn of session.turns) wanted.set(`turn ${turn.turnId}`, { turn, since: turn.startedAt });
  // Nothing runs where the process is gone, and a call that waits for a person does not run yet.
  for (const tool of ['dead', 'needs_input'].includes(session.state) ? [] : session.tools) wanted.set(`tool ${tool.callId} ${tool.startedAt} ${tool.name}`, { tool, since: tool.startedAt });
  for (const [key, { node }] of running) {
    if (!wanted.has(key)) {
      node.remove();
      running.delete(key);
    }
  }
  for (const [key, { turn, tool, since }] of wanted) {
    let row = running.get(key);
    if (!row) {
      row = { word: el('b'), time: el('span', { class: 'pace' }), more: el('small'), since, isTool: Boolean(tool) };
      const abort = turn ? el('button', { type: 'button', onclick: () => abortTurn(turn.turnId) }, 'Abort turn')
        : tool.turnId && tool.callId && el('button', { type: 'button', onclick: () => abortTool(tool.turnId, tool.callId, tool.name) }, 'Abort call');
      row.node = el('li', { class: turn ? 'turn' : 'tool' }, el('div', {}, row.word, row.more), row.time, abort || null);
      running.set(key, row);
    }
    put(row.word, turn ? turn.turnId : tool.name || 'a tool');
    put(row.more, turn ? ['turn', `${turn.toolCallCount} ${turn.toolCallCount === 1 ? 'call' : 'calls'}`, turn.parentTurnId && `begun by ${turn.parentTurnId}`,
                          turn.aborting && 'is being stopped'].filter(Boolean).join(' · ')
      : [tool.command, tool.message, tool.turnId && `of turn ${tool.turnId}`].filter(Boolean).join(' · '));
    parts.running.append(row.node);
  }
  sections.running.hidden = running.size === 0;
}

function tickRunning() {
  for (const { since, time, isTool } of running.values()) {
    const elapsed = now() - since;
    put(time, isTool ? spoken(elapsed) : spoken(elapsed));
    mark(time, 'class', isTool ? `pace ${pace(elapsed)}` : 'pace');
  }
}

function bar(name, percent, used, most) {
  const share = Math.min(100, percent);
  const look = percent >= 100 ? 'bad' : percent >= 80 ? 'warn' : '';
  const node = el('div', { class: 'meter' }, el('span', {}, name),
    el('meter', { min: '0', max: '100', high: '80', optimum: '0', value: share, 'aria-label': `${name}: ${Math.round(percent)} percent used` }),
    el('span', { class: `number ${look}` }, `${used} of ${most}`));
  return node;
}

function showBudget(budget) {
  sections.budget.hidden = !budget;
  if (!budget) return;
  const bars = [
    ['steps', budget.currentStep, budget.maxSteps],
    ['tool calls', budget.toolCalls, budget.maxToolCalls],
    ['tokens', budget.tokens, budget.maxTokens],
    ['cost', budget.cost, budget.maxCost],
    [budget.timeEnforced ? 'time' : 'time (advice)', budget.elapsedSeconds, budget.maxSeconds, (s) => spoken(s * 1000)],
  ].filter(([, , most]) => most !== null).map(([name, used, most, say = (n) => n.toLocaleString()]) =>
    bar(name, most > 0 ? 100 * used / most : 100, say(used), say(most)));
  const stage = budget.stage === 'nominal' ? [] : [el('p', { class: 'stage' }, `Stage: ${budget.stage}, by ${budget.axis}`)];
  parts.budget.replaceChildren(...bars, ...stage);
}

/** What the model's server does: in words, and as a bar where it is known how much there is to do. */
function showServer(server) {
  parts.server.hidden = !server;
  if (!server) return;
  const { done, total, since, why } = server;
  parts.server.replaceChildren(...[
    el('span', {}, `The model server ${serverSaid(server)}`), el('small', {}, `for ${spoken(now() - since)}`),
    total && el('progress', { max: total, value: Math.min(done, total), 'aria-label': 'The prompt is read' }),
    why && el('small', { class: 'why' }, why)].filter(Boolean));
}

/** What a person can do about it, if not here alone. */
function showDeed(session) {
  const deed = deedOf(session);
  parts.deed.hidden = !deed;
  put(parts.deed, deed);
}

/** A question stays as it is while it is open: a focused button stays too. */
function showQuestion(session) {
  const now = session.question?.questionId ?? '';
  if (now === asked) return;
  asked = now;
  question.hidden = !now;
  if (now) fillQuestion(question.lastChild, session);
}

const round = roundDetails(id);
round.hidden = true;
sections.evidence.append(round);
let evidenceShown = '';
function showEvidence(session) {
  const calm = hasEnded(session) || ['starting', 'progressing'].includes(session.health);
  const loops = !calm && session.health === 'looping';
  if (loops && round.hidden) round.open = true;  // a person first wants to know which calls repeat
  round.hidden = !loops;
  const proof = JSON.stringify(calm ? [] : session.evidence);
  if (proof === evidenceShown) return;
  evidenceShown = proof;
  fillList('evidence', JSON.parse(proof).map(({ seq, note }) => el('li', {}, `${note} `,
    el('a', { href: `#event-${seq}` }, `event ${seq}`))));
}

const taskBrief = 200;  // characters; more opens on demand, so that the page shows how the session is
let taskOpen = false;

function aboutTask(task, title) {
  if (!task || task === title) return null;
  if (task.length <= taskBrief) return el('span', { class: 'task' }, task);
  return el('details', { class: 'task', open: taskOpen, ontoggle: (event) => { taskOpen = event.target.open; } },
            el('summary', {}, `${task.slice(0, taskBrief)}…`), el('p', {}, task));
}

function showAbout(session) {
  const { agent, task, parentSessionId: parent, labels, attempt, lastMessage } = session;
  parts.about.replaceChildren(...[
    aboutTask(task, session.title),
    agent && el('span', {}, `Agent ${agent}`), session.directory && el('span', { title: labels.cwd }, session.directory),
    el('span', { class: 'id' }, session.sessionId), parent && el('span', {}, 'Child of ', el('a', { href: linkTo(parent) }, parent)),
    attempt > 1 && el('span', {}, `Attempt ${attempt}`), parts.labels].filter(Boolean));
  parts.said.hidden = !lastMessage || session.reason.endsWith(lastMessage) || !['resting', 'ready', 'needs_you'].includes(session.attention);
  put(parts.said, lastMessage);
  parts.labels.replaceChildren(...Object.entries(labels).map(([key, value]) => el('li', {}, `${key}: ${value}`)));
}

const sourceNames = { otlp: 'OpenTelemetry', mcp: 'MCP', unknown: 'not recorded' };

/** By which ways it was heard, and when each was last. */
function heardFrom(sources) {
  const others = sources.filter(({ source }) => source !== 'monitor');
  return others.length === 0 ? null : others.map(({ source, reports, lastAt }) =>
    el('div', { title: `${reports.toLocaleString()} ${reports === 1 ? 'report' : 'reports'}` }, `${sourceNames[source] ?? source} `, agoElement(lastAt)));
}

/** What a way tells whenever it happens. Anything else counts as known only once it came that way. */
const sure = { agent: ['questions', 'end'], hooks: ['calls', 'questions', 'end'], proxy: ['tokens', 'server'], transcript: ['calls', 'tokens'], run: ['end'] };
const spots = { calls: 'calls while they run', tokens: 'tokens', questions: 'questions for a person', end: 'how it ends', server: 'the model server' };

/** What no way by which it was heard tells, as far as what came shows; null: nothing is missing, or a way is not recorded. */
function blindSpots(sources) {
  const ways = sources.filter(({ source }) => source !== 'monitor');
  if (ways.length === 0 || ways.some(({ source }) => source === 'unknown')) return null;
  const known = new Set(ways.flatMap(({ source, told }) => [...(sure[source] ?? []), ...(told ?? [])]));
  const missing = Object.keys(spots).filter((spot) => !known.has(spot));
  return missing.length === 0 ? null : `${missing.map((spot) => spots[spot]).join(', ')}: unknown`;
}

function showFacts(session) {
  const { progress, currentPhase, iteration, validUntil, lifecycle } = session;
  const changed = progress.lastChangeAgo === null ? null : session.now - progress.lastChangeAgo;
  const facts = [
    ['Lifecycle', session.state === 'dead' ? null : lifecycle], ['Waits for', waitOf(session)], ['Phase', currentPhase], ['Iteration', iteration],
    ['State changes', session.wastedCalls ? `${progress.stateChanges}; ${session.wastedCalls} calls without anything new` : progress.stateChanges],
    ['Last change', changed === null ? null : [progress.lastChange, agoElement(changed)]],
    ['Heartbeats', progress.heartbeats],
    ['Heard from', heardFrom(session.sources)], ['Blind spots', blindSpots(session.sources)],
    ['Similar sessions', session.estimate?.unfinished?.text], ['Calls left', session.estimate?.callsLeft?.text],
    ['Re-checked at', validUntil === null || hasEnded(session) ? null : [atWall(validUntil)]],
  ].filter(([, value]) => value !== null && value !== undefined);
  parts.facts.replaceChildren(...facts.flatMap(([name, value]) =>
    [el('dt', {}, name), el('dd', {}, ...(Array.isArray(value) ? value : [String(value)]))]));
}

function show() {
  const session = shown;
  if (!session || connection.paused) return;
  const ended = hasEnded(session);
  setBadge(parts.health, session.state);
  put(parts.title, session.title);
  parts.since.replaceChildren(...(ended ? [agoElement(session.outcome?.at ?? session.healthSince)] : [`for ${spoken(now() - session.stateSince)}`]));
  document.title = `${nameOf(session.state)}: ${session.title} – Watchdog`;
  const { outcome, explainedBy, cancel } = session;
  put(parts.reason, timely(session.reason));
  const notices = noticesOf(session);
  put(parts.notices, notices);
  parts.notices.hidden = !notices;
  parts.culprit.hidden = !explainedBy;
  if (explainedBy) {
    parts.culprit.replaceChildren('Because its child ', el('a', { href: linkTo(explainedBy.sessionId) }, explainedBy.sessionId),
                                  ' is ', badge(explainedBy.health), `: ${timely(explainedBy.reason)}`);
  }
  parts.outcome.hidden = !outcome;
  mark(parts.outcome, 'class', `notice ${outcome?.kind ?? ''}`);
  if (outcome) parts.outcome.replaceChildren(`Ended as ${outcome.kind} `, agoElement(outcome.at));
  parts.cancel.hidden = !cancel || ended;
  if (cancel) {
    parts.cancel.replaceChildren(`${cancel.by} asked it to stop `, agoElement(cancel.at), cancel.reason ? `: ${cancel.reason}` : '');
  }
  showServer(ended ? null : session.server);
  showQuestion(session);
  showDeed(session);
  showAbout(session);
  showFacts(session);
  showEvidence(session);
  showRunning(session);
  tickRunning();
  showBudget(session.budget);
  check.hidden = stop.hidden = ended;
  drawTimeline();
}

function drawTimeline() {
  if (begin === null) return;
  const ended = hasEnded(shown);
  const life = { begin, transitions, end: ended ? shown.outcome?.at ?? null : null, state: ended ? null : shown.state };
  timeline.draw(life);
  activity.draw(life);
}

function showOpinions() {
  // A question has the id of its answer with a question mark before it.
  const answered = new Set([...opinions.values()].map(({ event_id: key }) => key));
  const list = [...opinions.values()].filter(({ state, event_id: key }) =>
    !(state === 'pending' && key && answered.has(key.replace(/^\?/, '')))).sort((a, b) => b.seq - a.seq);
  fillList('opinions', list.slice(0, 20).map((event) => el('li', {},
    el('b', {}, event.state === 'pending' ? 'being asked' : verdictOf(event)),
    ` ${[event.name, event.confidence === undefined || event.confidence === null ? null : `${Math.round(100 * event.confidence)} % sure`]
      .filter(Boolean).join(', ')} `, agoElement(event.at_ms), event.text ? el('small', {}, event.text) : null)));
}

async function showRelatives() {
  const page = await find(`/api/autonomous/sessions?ancestor=${encodeURIComponent(id)}&limit=100`).catch(() => null);
  const rows = (page?.sessions ?? []).filter(({ sessionId }) => sessionId !== id).sort((a, b) => a.createdAt - b.createdAt);
  const tree = families(rows);
  activity.family(tree);
  fillList('children', [
    ...tree.map(({ row, depth }) => el('li', { 'data-depth': depth > 0 ? Math.min(depth, 3) : null }, badge(row.state),
      el('a', { href: linkTo(row.sessionId) }, row.title), el('small', {}, timely(row.reason)))),
    ...(page?.next ? [el('li', {}, el('small', {}, `Only the newest ${rows.length} are shown.`))] : [])]);
}

async function showAlerts() {
  const page = await find(`/api/alerts?sessionId=${encodeURIComponent(id)}&limit=20`).catch(() => null);
  const asking = openAlerts(page?.alerts ?? [], () => shown);
  fillList('alerts', (page?.alerts ?? []).map((alert) => {
    const open = asking.includes(alert);
    const reason = alert.kind === 'recovery' ? recoveryOf(alert) : alert.health === shown?.outcome?.kind ? shown.reason : alert.reason;
    return el('li', {}, badge(alert.kind === 'recovery' ? 'recovered' : alert.health), el('span', {}, timely(reason)), agoElement(alert.at),
      el('small', {}, [...alert.channels.map(({ name, state, error }) => `${name}: ${state}${error ? ` (${error})` : ''}`),
                       alert.acknowledged && `acknowledged by ${alert.acknowledged.by}`,
                       alert.snoozedUntil > now() && `quiet for ${spoken(alert.snoozedUntil - now())}`].filter(Boolean).join(' · ')),
      ...(open ? [el('button', { type: 'button', onclick: () => acknowledge(alert.alertId, shown?.title ?? id) }, 'Acknowledge'),
                  el('button', { type: 'button', onclick: () => snooze(alert.alertId, shown?.title ?? id) }, 'Snooze 1 h')] : []));
  }));
}

/** What happened before the stream began. */
async function loadPast() {
  const pages = [];
  for (let after = 0; after !== null && pages.length < 50;) {
    const page = await get(`${own}/transitions?after=${after}&limit=1000`);
    pages.push(...page.transitions);
    after = page.next;
  }
  const known = new Set(pages.map((change) => change.id));
  transitions = [...pages, ...transitions.filter((change) => !known.has(change.id))];
  const first = (await get(`${own}/events?limit=1`)).events[0];
  begin = Math.min(first?.at_ms ?? Infinity, transitions[0]?.at ?? Infinity, now());
  for (const event of (await get(`${own}/events?kind=opinion&before=9223372036854775807&limit=50`)).events) opinions.set(event.seq, event);
  showOpinions();
  await events.load();
  activity.load();
  show();
  if (location.hash.startsWith('#event-')) await events.reveal(Number(location.hash.slice(7)));
}

function onRecord(name, data) {
  heard(data.now);
  if (name === 'snapshot') {
    if (data.sessions.length > 0) [shown] = data.sessions;
    shown = { now: data.now, ...shown };
    if (begin === null || data.missed || !data.resumed) loadPast().catch(() => {});
    refresh();
    show();
  } else if (name === 'session') {
    shown = { now: now(), ...data };  // a document says how long ago, not when
    show();
  } else if (name === 'event') {
    events.add(data);
    activity.add(data);
    if (isAct(data)) setTimeout(() => { if (!connection.paused) acts.load(); }, actMs);
    if (data.kind === 'opinion') {
      opinions.set(data.seq, data);
      showOpinions();
    }
  } else if (name === 'transition') {
    if (transitions.some((change) => change.id === data.id)) return;
    transitions.push(data);
    announce(id, shown?.title ?? id, data.health, data.reason);
    show();
  }
}

function refresh() {
  if (document.hidden || connection.paused) return;
  showRelatives();
  showAlerts();
  acts.load();
}

const back = () => sessionStorage.getItem('list') ?? '/';

export function startSession(main) {
  main.replaceChildren(
    el('nav', { 'aria-label': 'Back' }, el('a', { href: back(), class: 'back' }, '← Sessions')),
    el('div', { class: 'title' }, parts.title, el('p', { class: 'now' }, parts.health, ' ', parts.since),
       el('div', { class: 'buttons' }, check, stop), parts.reason),
    question, parts.deed, parts.notices, parts.culprit, parts.server, parts.outcome, parts.cancel, parts.said, parts.about,
    el('div', { class: 'columns' },
       el('div', {}, sections.evidence, acts.node, sections.running, activity.node, timeline.node),
       el('aside', { 'aria-label': 'Facts' }, el('section', {}, el('h2', {}, 'Details'), parts.facts, save), sections.budget,
          sections.opinions, sections.children, sections.alerts)),
    events.node);
  onKey(['Escape'], 'back to the list', () => { location.href = back(); });
  onKey(['j'], 'next event', () => stepEvent(1));
  onKey(['k'], 'event before', () => stepEvent(-1));
  onKey(['Enter'], 'open what has the focus', () => false);
  addEventListener('hashchange', () => {
    if (location.hash.startsWith('#event-')) events.reveal(Number(location.hash.slice(7)));
  });
  main.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href^="#event-"]');
    if (link && link.hash === location.hash) events.reveal(Number(link.hash.slice(7)));  // no change of the hash
  });
  connection.onresume = () => { show(); loadPast().catch(() => {}); };
  setInterval(() => {
    if (connection.paused || !shown) return;
    tickRunning();
    if (!hasEnded(shown)) showServer(shown.server);
    drawTimeline();
    put(parts.reason, timely(shown.reason));
    if (!hasEnded(shown)) parts.since.replaceChildren(`for ${spoken(now() - shown.stateSince)}`);
  }, 1000);
  setInterval(refresh, refreshMs);
  new Stream(`${own}/stream`, { record: onRecord, state: connection.is });
}

function stepEvent(by) {
  const all = [...events.node.querySelectorAll('summary')];
  const at = all.indexOf(document.activeElement);
  all[Math.max(0, Math.min(at + by, all.length - 1))]?.focus();
}
