// The last 24 hours of all sessions: how many were how, and what went wrong most.

import { find, get } from './api.js';
import { heard, lasting, now, spoken, wall } from './clock.js';
import { el, mark, put } from './element.js';
import { badge, nameOf, rank } from './health.js';
import { History, askWaits, countsOver, troubles } from './history.js';
import { onKey } from './keys.js';
import { paleness, palette } from './paint.js';
import { moments } from './timeline.js';
import { connection } from './top.js';

const day = 24 * 3600 * 1000;
const buckets = 144;
const height = 220;
const foot = 18;
const refreshMs = 60000;
const asksMax = 200;  // sessions that are asked at once for what they waited

const canvas = el('canvas', { role: 'img', 'aria-label': 'Sessions over the last 24 hours' });
const legend = el('ul', { class: 'sums' });
const table = el('tbody');
const wrong = el('ol', { class: 'wrong' });
const none = el('p', { class: 'none', hidden: true }, 'No session was there in the last 24 hours.');
const waited = el('h2', {}, 'Waits for you');
const waitedMore = el('p', { class: 'hint' });
const young = el('p', { class: 'hint', hidden: true });
const known = new History();
let shown = null;

function paint() {
  if (!shown || canvas.clientWidth === 0) return;
  const { counts, begin, end } = shown;
  const width = canvas.clientWidth;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const colour = palette();
  const looks = [...counts.keys()].sort((a, b) => rank(b) - rank(a));  // the worst on top, where it is seen
  const totals = Array.from({ length: buckets }, (_, at) => looks.reduce((sum, look) => sum + counts.get(look)[at], 0));
  const most = Math.max(...totals, 1);
  const room = height - foot - 4;
  const cell = width / buckets;
  const base = new Array(buckets).fill(0);
  // Lines at the half and the whole, behind the bars.
  pen.fillStyle = colour('line');
  for (const share of [0.5, 1]) pen.fillRect(0, Math.round(height - foot - share * room), width, 1);
  for (const look of looks) {
    pen.fillStyle = colour(look);
    pen.globalAlpha = paleness(look);
    counts.get(look).forEach((count, at) => {
      if (count === 0) return;
      const tall = count / most * room;
      base[at] += tall;
      pen.fillRect(at * cell, height - foot - base[at], Math.max(1, cell - 0.6), tall);
    });
  }
  pen.globalAlpha = 1;
  pen.fillStyle = colour('soft');
  pen.textBaseline = 'bottom';
  let right = -Infinity;
  for (const at of moments(begin, end)) {
    const text = wall(at).replace(/^.*, /, '').replace(/:\d\d(?= |$)/, '');
    const left = (at - begin) / (end - begin) * width;
    if (left < right + 8 || left + pen.measureText(text).width > width) continue;
    pen.fillText(text, left, height - 2);
    right = left + pen.measureText(text).width;
  }
  pen.textBaseline = 'top';
  for (const share of [0.5, 1]) if (Number.isInteger(most * share)) pen.fillText(`${most * share}`, 2, height - foot - share * room + 3);
  mark(canvas, 'aria-label', `Sessions over the last 24 hours, at most ${most} at once; the table below has the numbers`);
}

/** How long agents waited for people. `unknown`: of how many sessions it is not known for what they waited. */
function showWaits({ ms, times, sessions }, unknown, isComplete) {
  const least = unknown > 0 || !isComplete ? 'at least ' : '';
  put(waited, ms > 0 ? `Agents waited ${least}${lasting(ms)} for you` : 'No agent waited for you');
  put(waitedMore, [
    times > 0 && `${times.toLocaleString()} ${times === 1 ? 'wait' : 'waits'} of ${sessions.toLocaleString()} ${sessions === 1 ? 'session' : 'sessions'} for an answer, an approval or a login.`,
    'The time after a finished turn is not counted.',
    unknown > 0 && `Waits of ${unknown.toLocaleString()} more sessions are not counted yet.`,
    !isComplete && 'There is more than this page reads: older waits are not counted.'].filter(Boolean).join(' '));
}

async function load() {
  try {
    const [list, history] = await Promise.all([get('/api/autonomous/sessions?limit=10000'), get(`/api/autonomous/history?minutes=${day / 60000}`)]);
    connection.is('live');
    heard(list.now);
    known.fill(history);
    const end = now();
    const begin = end - day;
    const oldest = list.sessions.reduce((first, { createdAt }) => Math.min(first, createdAt), end);
    young.hidden = oldest <= begin || list.sessions.length === 0;
    put(young, `The first session began ${spoken(end - oldest)} ago.`);
    const unknown = await askWaits(known, list.sessions.filter(({ endedAt }) => !endedAt || endedAt > begin), find, asksMax);
    const since = history.complete ? begin : Math.max(begin, history.changes[0]?.at ?? begin);
    showWaits(known.waitsOver(list.sessions, since, end), unknown, history.complete && list.next === null);
    const counts = countsOver(list.sessions, known, begin, end, buckets);
    for (const [look, numbers] of counts) if (!numbers.some(Boolean)) counts.delete(look);
    shown = { counts, begin, end };
    const looks = [...counts.keys()].sort((a, b) => rank(a) - rank(b));
    none.hidden = looks.length > 0;
    canvas.parentNode.hidden = looks.length === 0;  // an empty chart says nothing
    legend.replaceChildren(...looks.map((look) => el('li', {}, badge(look), ` ${counts.get(look).at(-1)}`,
      Math.max(...counts.get(look)) > counts.get(look).at(-1) ? el('small', {}, `at most ${Math.max(...counts.get(look))}`) : null)));
    const hours = Array.from({ length: 24 }, (_, at) => at * buckets / 24 + buckets / 24 - 1);
    table.parentNode.tHead.rows[0].replaceChildren(el('th', { scope: 'col' }, 'Until'), ...looks.map((look) => el('th', { scope: 'col' }, nameOf(look))));
    table.replaceChildren(...hours.reverse().map((at) => el('tr', {}, el('th', { scope: 'row' }, wall(begin + (at + 1) * (end - begin) / buckets)),
      ...looks.map((look) => el('td', {}, String(counts.get(look)[at]))))));
    const found = troubles(list.sessions, known).slice(0, 12);
    wrong.replaceChildren(...(found.length > 0 ? found.map(({ look, what, agent, named, count }) =>
      el('li', {}, el('b', { class: 'number' }, `${count} ×`), badge(look), el('span', {}, what),
         el('a', { href: `/?state=${look}${named ? `&agent=${encodeURIComponent(agent)}` : ''}` }, agent))) : [el('li', {}, 'Nothing.')]));
    paint();
  } catch {
    connection.is('lost');
  }
}

export function startOverview(main) {
  main.replaceChildren(el('nav', { 'aria-label': 'Back' }, el('a', { href: '/', class: 'back' }, '← Sessions')),
    el('div', { class: 'title' }, el('h1', {}, 'The last 24 hours'), young), none,
    el('section', { class: 'waited' }, waited, waitedMore),
    el('section', { class: 'overview' }, el('h2', {}, 'Sessions by state'), canvas, legend,
       el('details', {}, el('summary', {}, 'As a table'), el('div', { class: 'wide' }, el('table', {}, el('thead', {}, el('tr', {})), table)))),
    el('section', {}, el('h2', {}, 'What went wrong most'), wrong));
  onKey(['Escape'], 'back to the list', () => { location.href = '/'; });
  new ResizeObserver(paint).observe(canvas.parentNode);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
  load();
  setInterval(() => { if (!document.hidden && !connection.paused) load(); }, refreshMs);
}
