// What a session did, drawn on one time axis: its state, heartbeats, turns, waits, model requests and
// calls. Zooms and pans by pointer and keyboard; the same is there as a table.

import { find } from './api.js';
import { now, spoken, wall } from './clock.js';
import { el, linkTo, mark, put } from './element.js';
import { nameOf } from './health.js';
import { paleness, palette } from './paint.js';
import { besideGap, inLanes, namesBeside, reduced, seriesOf, spansOf, thinned } from './spans.js';
import { moments, pieces } from './timeline.js';

const pageSize = 1000;
const eventsMax = 40000;
const lanesMax = 14;
const lane = 18;   // px
const strip = 14;
const axis = 20;
const gutter = 76;     // px at the left, for the names of the groups
const seriesMax = 8;
const seriesHeight = 34;  // px
const narrow = 560;    // px: a narrower picture has no names there
const plotLeft = (width) => (width > narrow ? gutter : 0);
const groupGap = 8;  // px
const spanMin = 200;  // ms in sight at least
const tableRows = 300;
const precise = (ms) => (ms < 10000 ? `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s` : spoken(ms));

const looks = { ok: 'progressing', running: 'accent', failed: 'stuck', 'timed out': 'silent', lost: 'unknown', waiting: 'needs',
                hung: 'stuck', gone: 'stuck', restarted: 'suspect' };

/** Outcomes of calls in the words of the legend. */
const words = { ok: 'returned', waiting: 'waiting for a person' };

const rounded = (value) => value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 1 : 0 });

/** `tokens 11.7/s, usually 9.8/s; 6,030 so far`. */
function seriesInWords({ name, unit, points, usual, now: total }) {
  const usually = usual === null ? '' : `, usually ${rounded(usual)}${unit}`;
  return `${name} ${rounded(points.at(-1)[1])}${unit}${usually}${total === null ? '' : `; ${rounded(total)} so far`}`;
}

function paintSeries(canvas, { points, usual }, { colour, from, to }) {
  const width = canvas.clientWidth;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(seriesHeight * scale);
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const zero = plotLeft(width);
  const x = (at) => zero + (at - from) / (to - from) * (width - zero);
  const most = 1.1 * points.reduce((high, [, value]) => Math.max(high, value), usual ?? 0) || 1;
  const y = (value) => seriesHeight - 1 - value / most * (seriesHeight - 4);
  pen.fillStyle = colour('soft');
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  pen.textBaseline = 'top';
  if (zero > 0) pen.fillText(rounded(most / 1.1), 0, 2);
  pen.beginPath();
  pen.rect(zero, 0, width - zero, seriesHeight);
  pen.clip();
  const columns = thinned(points, x);
  pen.beginPath();
  // A value holds for the time before it.
  columns.forEach(([left, value], at) => {
    pen.lineTo(at === 0 ? left : columns[at - 1][0], y(value));
    pen.lineTo(left, y(value));
  });
  pen.strokeStyle = colour('accent');
  pen.stroke();
  pen.lineTo(columns.at(-1)[0], seriesHeight);
  pen.lineTo(columns[0][0], seriesHeight);
  pen.globalAlpha = 0.14;
  pen.fillStyle = colour('accent');
  pen.fill();
  pen.globalAlpha = 1;
  pen.fillStyle = colour('line');
  pen.fillRect(zero, seriesHeight - 1, width - zero, 1);
  if (usual === null) return;
  pen.strokeStyle = colour('soft');
  pen.setLineDash([3, 3]);
  pen.beginPath();
  pen.moveTo(zero, y(usual));
  pen.lineTo(width, y(usual));
  pen.stroke();
}

export class Activity {
  node = el('section', { class: 'activity', 'aria-labelledby': 'activity-title', hidden: true });
  #path;
  #canvas = el('canvas', { tabindex: '0', role: 'application', 'aria-roledescription': 'timeline', 'aria-describedby': 'activity-keys' });
  #tip = el('p', { class: 'tip', role: 'status' });
  #legend = el('ul', { class: 'sums' });
  #table = el('tbody');
  #more = el('p', { class: 'hint' });
  #counters = el('div', { class: 'counters' });
  #children = [];
  #events = new Map();
  #sorted = [];
  #spans = spansOf([]);
  #series = [];
  #bars = [];        // as drawn, in order of time
  #hit = [];         // {x, y, width, height, bar}
  #transitions = [];
  #state = null;     // of the session while it goes on
  #begin = null;
  #end = null;       // of the session; null while it runs
  #from = null;      // what is in sight; null: all of it
  #to = null;
  #chosen = null;
  #drawing = false;
  #stale = false;
  #open;

  /** `reveal(seq)` shows an event. */
  constructor(session, reveal) {
    this.#path = `/api/autonomous/sessions/${encodeURIComponent(session)}/events`;
    this.#open = reveal;
    const button = (text, label, run) => el('button', { type: 'button', class: 'plain', 'aria-label': label, title: label, onclick: run }, text);
    this.node.append(
      el('div', { class: 'heading' }, el('h2', { id: 'activity-title' }, 'Activity'), button('+', 'Zoom in', () => this.#zoom(0.5)),
         button('−', 'Zoom out', () => this.#zoom(2)), button('All', 'Show all of it', () => this.#show(null, null))),
      this.#canvas, this.#tip,
      el('p', { id: 'activity-keys', class: 'unseen' }, 'Arrow keys go from bar to bar, plus and minus zoom, shift with arrows pans, 0 shows all, Enter shows the event.'),
      this.#legend, this.#counters,
      el('details', { ontoggle: () => this.#list() }, el('summary', {}, 'As a table'), this.#more,
         el('div', { class: 'wide' }, el('table', {}, el('thead', {}, el('tr', {}, ...['What', 'Name', 'Began', 'Took', 'Outcome', 'Turn']
           .map((name) => el('th', { scope: 'col' }, name)))), this.#table))));
    this.#listen();
    new ResizeObserver(() => this.#soon()).observe(this.#canvas.parentNode);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#soon());
  }

  /** All events, the newest first: what is there is drawn at once. */
  async load() {
    let before = '9223372036854775807';
    while (before !== null && this.#events.size < eventsMax) {
      const page = await find(`${this.#path}?limit=${pageSize}&before=${before}`).catch(() => null);
      if (!page) return;
      for (const event of page.events) this.#events.set(event.seq, reduced(event));
      before = page.next;
      this.#changed();
    }
  }

  add(event) {
    this.#events.set(event.seq, reduced(event));
    this.#changed();
  }

  /** `children`: {row, depth} of the sessions below it, each parent before its children. Each has a lane. */
  family(children) {
    this.#children = children.map(({ row, depth }, lane) => ({ kind: 'child', name: row.title, depth, lane, session: row.sessionId, begin: row.createdAt,
                                                                end: row.endedAt, outcome: nameOf(row.state), look: row.state }));
    this.#soon();
  }

  draw({ begin, transitions, end, state }) {
    this.#state = state;
    this.#begin = begin;
    this.#end = end;
    this.#transitions = transitions;
    this.#soon();
  }

  #changed() {
    this.#stale = true;
    this.#soon();
  }

  #soon() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#paint();
    });
  }

  #rebuild() {
    this.#stale = false;
    this.#sorted = [...this.#events.values()].sort((a, b) => a.seq - b.seq);
    this.#spans = spansOf(this.#sorted);
    this.#series = seriesOf(this.#sorted).slice(0, seriesMax);
    const { calls, requests, turns, waits } = this.#spans;
    this.#bars = [...turns, ...waits, ...requests, ...calls].sort((a, b) => a.begin - b.begin);
    if (this.#chosen) this.#chosen = this.#bars.find(({ seq, kind }) => seq === this.#chosen.seq && kind === this.#chosen.kind) ?? null;
    this.#showPieces();
    this.#list();
  }

  /** In words: what is drawn. */
  #showPieces() {
    const { calls, requests, waits } = this.#spans;
    const count = (outcome) => calls.filter((call) => call.outcome === outcome).length;
    const outcomes = ['ok', 'failed', 'timed out', 'lost', 'waiting', 'running'].map((word) => [word, count(word)]).filter(([, number]) => number > 0);
    const line = (look, number, one, many = `${one}s`, more = '') => number > 0 &&
      el('li', {}, el('span', { class: `swatch ${look}`, 'aria-hidden': 'true' }), ` ${number.toLocaleString()} ${number === 1 ? one : many}${more}`);
    const asked = waits.filter(({ look }) => look === 'needs').length;
    this.#legend.replaceChildren(...[
      ...outcomes.map(([word, number]) => line(looks[word], number, 'call', 'calls', ` ${words[word] ?? word}`)),
      line('blocked', requests.length, 'model request'), line('needs', asked, 'wait for a person', 'waits for a person'),
      line('blocked', waits.length - asked, 'other wait')].filter(Boolean));
    mark(this.#canvas, 'aria-label', `Activity: ${calls.length} calls, ${outcomes.map(([word, number]) => `${number} ${word}`).join(', ')}; ${requests.length} model requests`);
    this.node.hidden = this.#bars.length === 0 && this.#spans.beats.length === 0;
  }

  #list() {
    if (!this.node.querySelector('details').open) return;
    const newest = this.#bars.slice(-tableRows).reverse();
    put(this.#more, this.#bars.length > newest.length ? `The newest ${newest.length} of ${this.#bars.length.toLocaleString()}.` : '');
    this.#table.replaceChildren(...newest.map((bar) => el('tr', {}, el('td', {}, bar.kind), el('td', {}, bar.name),
      el('td', {}, wall(bar.begin)), el('td', {}, bar.end === null ? `${precise(now() - bar.begin)} so far` : precise(bar.end - bar.begin)),
      el('td', {}, bar.outcome), el('td', {}, bar.turn ?? ''))));
  }

  #range() {
    const first = Math.min(this.#begin ?? Infinity, this.#sorted[0]?.at ?? Infinity);
    const until = this.#end ?? now();
    const begin = Number.isFinite(first) ? first : until - 1000;
    return { begin, until: Math.max(until, begin + spanMin), from: this.#from ?? begin, to: Math.max(this.#to ?? until, (this.#from ?? begin) + spanMin) };
  }

  #paint() {
    if (this.#stale) this.#rebuild();
    if (this.node.hidden) return;
    const width = this.#canvas.clientWidth;
    if (width === 0) return;
    const { from, to, until } = this.#range();
    const { calls, requests, turns, waits, beats, end } = this.#spans;
    const colour = palette();
    const zero = plotLeft(width);
    const x = (at) => zero + (at - from) / (to - from) * (width - zero);
    const groups = [
      ['Turns', turns, Math.min(inLanes(turns, until), 4)], ['Waits', waits, waits.length > 0 ? 1 : 0],
      ['Model', requests, Math.min(inLanes(requests, until), lanesMax)], ['Calls', calls, Math.min(inLanes(calls, until), lanesMax)],
      ['Children', this.#children.slice(0, lanesMax), Math.min(this.#children.length, lanesMax)]];
    const height = axis + (beats.length > 0 ? 2 : 1) * strip + groups.reduce((sum, [, , lanes]) => sum + lanes * lane + (lanes > 0 ? groupGap : 0), 0) + 4;
    const scale = devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale) || this.#canvas.height !== Math.round(height * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
      this.#canvas.style.height = `${height}px`;
    }
    const pen = this.#canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = 'middle';
    const entitle = (name, middle) => {
      if (zero === 0) return;
      pen.fillStyle = colour('soft');
      pen.fillText(name, 0, middle);
    };

    let right = -Infinity;
    for (const at of moments(from, to)) {
      const left = x(at);
      pen.fillStyle = colour('line');
      pen.fillRect(left, 0, 1, height);
      const text = wall(at).replace(/^.*, /, '');
      if (left < right + 8 || left + 4 + pen.measureText(text).width > width) continue;
      pen.fillStyle = colour('soft');
      pen.fillText(text, left + 4, axis / 2);
      right = left + pen.measureText(text).width + 4;
    }
    let y = axis;
    entitle('State', y + (strip - 3) / 2);
    for (const piece of pieces(this.#begin ?? from, this.#transitions, until, this.#state)) {
      if (piece.end < from || piece.begin > to) continue;
      pen.fillStyle = colour(piece.health);
      const left = Math.max(x(piece.begin), zero);
      pen.globalAlpha = paleness(piece.health);
      pen.fillRect(left, y, Math.max(1, x(piece.end) - left), strip - 3);
    }
    pen.globalAlpha = 1;
    y += strip;
    if (beats.length > 0) {
      entitle('Heartbeats', y + strip / 2);
      this.#paintBeats(pen, beats, { x, zero, width, y, colour });
      y += strip;
    }
    this.#hit = [];
    for (const [name, bars, lanes] of groups) {
      if (lanes === 0) continue;
      y += groupGap;
      entitle(name, y + lane / 2 - 1);
      const before = this.#hit.length;
      for (const bar of bars) this.#paintBar(pen, bar, { x, y, zero, lanes, from, to, width, until, colour });
      this.#nameBeside(pen, this.#hit.slice(before), { width, colour });
      y += lanes * lane;
    }
    if (end && end.at >= from && end.at <= to) {
      pen.fillStyle = colour(end.outcome === 'failed' ? 'stuck' : end.outcome === 'incomplete' ? 'slow' : 'soft');
      const bad = end.outcome === 'failed' || end.outcome === 'incomplete';
      pen.fillRect(Math.min(x(end.at), width - (bad ? 4 : 1)), axis, bad ? 4 : 1, height - axis);
    }
    this.#paintCounters(colour, from, to);
  }

  /** How many heartbeats came, never each. */
  #paintBeats(pen, beats, { x, zero, width, y, colour }) {
    const cell = 3;
    const counts = new Float64Array(Math.ceil((width - zero) / cell) + 1);
    const cellOf = (at) => Math.floor((x(at) - zero) / cell);
    for (const { at, count, span } of beats) {
      // A row of heartbeats spreads over its time.
      const first = Math.max(0, cellOf(at - span));
      const last = Math.min(counts.length - 1, cellOf(at));
      if (last < 0 || first >= counts.length) continue;
      for (let cellAt = first; cellAt <= last; ++cellAt) counts[cellAt] += count / (last - first + 1);
    }
    const most = Math.max(...counts, 1e-9);
    pen.fillStyle = colour('starting');
    counts.forEach((count, at) => {
      if (count === 0) return;
      pen.globalAlpha = 0.25 + 0.6 * count / most;
      pen.fillRect(zero + at * cell, y + 1, cell - 1, strip - 4);
    });
    pen.globalAlpha = 1;
  }

  #paintBar(pen, bar, { x, y, zero, lanes, from, to, width, until, colour }) {
    const end = bar.end ?? until;
    if (end < from || bar.begin > to) return;
    const left = Math.max(zero, x(bar.begin));
    const wide = Math.max(2, Math.min(x(end), width + 2) - left);
    const top = y + Math.min(bar.lane ?? 0, lanes - 1) * lane;
    const look = bar.kind === 'turn' ? 'line' : bar.kind === 'request' && bar.outcome === 'ok' ? 'blocked' : bar.look ?? looks[bar.outcome] ?? 'unknown';
    pen.fillStyle = colour(look);
    pen.globalAlpha = bar === this.#chosen || bar.kind === 'turn' ? 1 : 0.85;
    pen.beginPath();
    pen.roundRect(left, top, wide, lane - 3, Math.min(3, wide / 2));
    pen.fill();
    // The time that waited for a person keeps that colour.
    pen.fillStyle = colour('needs');
    for (const wait of bar.waits ?? []) {
      const begin = Math.max(left, x(wait.begin));
      pen.fillRect(begin, top, Math.max(0, Math.min(left + wide, x(wait.end ?? until)) - begin), lane - 3);
    }
    pen.globalAlpha = 1;
    if (bar === this.#chosen) {
      pen.strokeStyle = colour('ink');
      pen.strokeRect(left + 0.5, top + 0.5, Math.max(1, wide - 1), lane - 4);
    }
    const place = { left, top, right: left + wide, bottom: top + lane - 2, bar };
    this.#hit.push(place);
    const name = `${'› '.repeat(bar.depth ?? 0)}${bar.name}`;
    if (wide < 28 || (bar.kind === 'turn' && pen.measureText(name).width > wide - 6)) return void (place.name = name);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, wide - 3, lane);
    pen.clip();
    pen.fillStyle = bar.kind === 'turn' ? colour('ink') : colour('sheet');
    pen.fillText(name, left + 4, top + lane / 2 - 1);
    pen.restore();
  }

  /** A short bar's name stands beside it, where nothing else does. */
  #nameBeside(pen, places, { width, colour }) {
    pen.fillStyle = colour('soft');
    for (const { name, right, top } of namesBeside(places, width, (text) => pen.measureText(text).width))
      pen.fillText(name, right + besideGap, top + lane / 2 - 1);
  }

  /** What changes over time, each on the axis of the bars above it, with its usual value as a dashed line. */
  #paintCounters(colour, from, to) {
    const known = [...this.#counters.children];
    if (known.length !== this.#series.length)
      this.#counters.replaceChildren(...this.#series.map(() => el('figure', {}, el('figcaption'), el('canvas', { role: 'img' }))));
    this.#series.forEach((series, at) => {
      const [caption, canvas] = this.#counters.children[at].children;
      const text = seriesInWords(series);
      put(caption, text);
      mark(canvas, 'aria-label', text);
      paintSeries(canvas, series, { colour, from, to });
    });
  }

  #show(from, to) {
    const { begin, until } = this.#range();
    const least = Math.min(spanMin, until - begin);
    if (from === null || (from <= begin && to >= until)) {
      this.#from = this.#to = null;
    } else {
      const span = Math.max(least, Math.min(to - from, until - begin));
      this.#from = Math.min(Math.max(from, begin), until - span);
      this.#to = this.#from + span;
    }
    this.#soon();
  }

  #zoom(by, share = 0.5) {
    const { from, to } = this.#range();
    const middle = from + (to - from) * share;
    this.#show(middle - (middle - from) * by, middle + (to - middle) * by);
  }

  #pan(by) {
    const { from, to } = this.#range();
    this.#show(from + (to - from) * by, to + (to - from) * by);
  }

  #say(bar) {
    if (!bar) return put(this.#tip, '');
    const took = bar.end === null ? `${precise(now() - bar.begin)} so far` : precise(bar.end - bar.begin);
    put(this.#tip, [bar.name, bar.kind === 'request' ? 'model request' : '', took, bar.outcome, `from ${wall(bar.begin)}`, bar.turn && `turn ${bar.turn}`,
                    bar.text, bar.result].filter(Boolean).join(' · '));
  }

  #choose(bar) {
    if (!bar) return;
    this.#chosen = bar;
    const { from, to } = this.#range();
    if (bar.begin < from || bar.begin > to) this.#show(bar.begin - (to - from) / 2, bar.begin + (to - from) / 2);
    this.#say(bar);
    this.#soon();
  }

  #at(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    return this.#hit.findLast((one) => x >= one.left - 1 && x <= one.right + 1 && y >= one.top && y <= one.bottom)?.bar ?? null;
  }

  #follow(bar) {
    if (bar?.kind === 'child') location.href = linkTo(bar.session);
    else if (bar) this.#open(bar.seq);
  }

  #listen() {
    const canvas = this.#canvas;
    let grip = null;
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;  // the page scrolls
      event.preventDefault();
      const { left, width } = canvas.getBoundingClientRect();
      const zero = plotLeft(width);
      if (event.ctrlKey || event.metaKey) this.#zoom(Math.exp(event.deltaY / 300), Math.max(0, event.clientX - left - zero) / (width - zero));
      else this.#pan(event.deltaX / (width - zero));
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      grip = { x: event.clientX, moved: false, ...this.#range() };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!grip) return this.#say(this.#at(event) ?? this.#chosen);
      const by = (event.clientX - grip.x) / (canvas.clientWidth - plotLeft(canvas.clientWidth));
      if (Math.abs(event.clientX - grip.x) > 4) grip.moved = true;
      if (grip.moved) this.#show(grip.from - by * (grip.to - grip.from), grip.to - by * (grip.to - grip.from));
    });
    canvas.addEventListener('pointerup', (event) => {
      const moved = grip?.moved;
      grip = null;
      const bar = this.#at(event);
      if (moved || !bar) return;
      if (bar === this.#chosen) this.#follow(bar);
      else this.#choose(bar);
    });
    canvas.addEventListener('keydown', (event) => {
      const at = this.#bars.indexOf(this.#chosen);
      const acts = {
        ArrowRight: () => (event.shiftKey ? this.#pan(0.25) : this.#choose(this.#bars[Math.min(at + 1, this.#bars.length - 1)])),
        ArrowLeft: () => (event.shiftKey ? this.#pan(-0.25) : this.#choose(at < 0 ? this.#bars.at(-1) : this.#bars[Math.max(at - 1, 0)])),
        Home: () => this.#choose(this.#bars[0]), End: () => this.#choose(this.#bars.at(-1)),
        '+': () => this.#zoom(0.5), '=': () => this.#zoom(0.5), '-': () => this.#zoom(2), 0: () => this.#show(null, null),
        Enter: () => this.#follow(this.#chosen),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      acts[event.key]();
    });
  }
}
