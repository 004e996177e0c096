// What happened in a session, as bars: calls, model requests, turns and waits, made of its events.
// Knows nothing of the page.

import { isForPerson } from './health.js';

const failures = { error: 'failed', tool_timeout: 'timed out' };
/** Calls whose later ones are done got lost; so the monitor sees it. */
const passedMax = 8;

/** Of an event only what a bar needs: ten thousand of them stay small. */
export function reduced(event) {
  const { seq, at_ms: at, kind, name, call_id: id, turn_id: turn } = event;
  switch (kind) {
    case 'tool_call': return { seq, at, kind, name, id, turn, text: event.args === undefined ? '' : JSON.stringify(event.args).slice(0, 120) };
    case 'tool_result': return { seq, at, kind, name, id };
    case 'error': case 'tool_timeout': return { seq, at, kind, name, id, text: event.text?.slice(0, 160) };
    case 'evidence': return { seq, at, kind, id: id ?? '', state: event.state, done: event.done, total: event.total };
    case 'turn': return { seq, at, kind, name, id };
    case 'wait': return { seq, at, kind, id, name: event.waiting_for, text: event.text?.slice(0, 160) };
    case 'end': return { seq, at, kind, name: event.outcome };
    case 'heartbeat': return { seq, at, kind, count: event.count ?? 1, span: event.span_ms ?? 0, counters: event.counters };
    case 'idle': return { seq, at, kind, name };
    default: return { seq, at, kind };
  }
}

/** Each bar gets the first lane in which nothing overlaps it. */
export function inLanes(bars, until) {
  const ends = [];
  for (const bar of bars) {
    const end = bar.end ?? until;
    let lane = ends.findIndex((last) => last <= bar.begin);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = Math.max(end, bar.begin + 1);
    bar.lane = lane;
  }
  return ends.length;
}

export const besideGap = 3;  // px between a bar and the name beside it

/**
 * Of bars as drawn, {left, right, top, name}, those with a name that has room between its bar and the
 * next one of the same lane. `measure` gives a text's width.
 */
export function namesBeside(places, width, measure) {
  const ends = new Map();  // by lane, of the room to the left of what was seen
  const found = [];
  for (const place of [...places].sort((a, b) => b.left - a.left)) {
    const room = (ends.get(place.top) ?? width) - place.right - 2 * besideGap;
    if (place.name && room > 20 && measure(place.name) <= room) found.push(place);
    ends.set(place.top, Math.min(ends.get(place.top) ?? width, place.left));
  }
  return found;
}

/** `events` are reduced ones, oldest first. Bars that are still open have no end. */
export function spansOf(events) {
  const calls = [];
  const requests = [];
  const turns = [];
  const waits = [];
  const beats = [];
  let open = [];
  const asked = new Map();
  const inTurn = new Map();
  let wait = null;
  let end = null;

  const endWait = (at) => {
    if (!wait) return;
    wait.end = at;
    for (const call of open) if (call.outcome === 'waiting') call.outcome = 'running';
    wait = null;
  };
  /** The call that asks a person does not run meanwhile. Where a wait does not name its call, no call runs. */
  const beginWait = ({ at, seq, name, id, text }) => {
    const isSame = wait && wait.what === name && (id ? wait.id === id : wait.text === text);  // some agents report a question twice
    if (isSame) return;
    endWait(at);
    const asks = isForPerson(name);
    wait = { kind: 'wait', seq, id, what: name, name: `waits for ${name || 'something'}`, begin: at, end: null, outcome: 'waiting', look: asks ? 'needs' : 'blocked', text };
    waits.push(wait);
    if (!asks) return;
    const named = open.filter((call) => id && call.id === id);
    for (const call of named.length > 0 ? named : open) {
      call.outcome = 'waiting';
      call.waits.push(wait);
    }
  };
  const drop = (at, outcome, which = () => true) => {
    for (const call of open.filter(which)) Object.assign(call, { end: at, outcome });
    open = open.filter((call) => !which(call));
  };
  const finish = ({ at, kind, name, id, text }) => {
    let found = id ? open.findIndex((call) => call.id === id) : -1;
    if (found < 0) found = open.findIndex((call) => call.name === name && !(call.id && id));
    if (found < 0) return;
    const [call] = open.splice(found, 1);
    Object.assign(call, { end: at, outcome: failures[kind] ?? 'ok', result: text });
    for (const older of open) if (older.seq < call.seq) older.passed += 1;
    drop(at, 'lost', (other) => other.passed >= passedMax);
  };

  for (const event of events) {
    const { at, kind, name, id, seq } = event;
    if (!['heartbeat', 'evidence', 'wait', 'message', 'budget', 'opinion', 'limit', 'turn'].includes(kind)) endWait(at);
    if (kind === 'tool_call') {
      const call = { kind: 'call', seq, name: name || 'a tool', id, turn: event.turn, begin: at, end: null, outcome: 'running', text: event.text, passed: 0, waits: [] };
      calls.push(call);
      open.push(call);
    } else if (kind === 'tool_result' || kind in failures) {
      finish(event);
    } else if (kind === 'evidence') {
      const known = asked.get(id);
      if (event.state === 'over') {
        if (known) Object.assign(known, { end: at, outcome: known.outcome === 'running' ? 'ok' : known.outcome });
        asked.delete(id);
      } else if (known) {
        if (['hung', 'gone', 'restarted'].includes(event.state)) known.outcome = event.state;
        known.name = event.state;
      } else {
        const request = { kind: 'request', seq, name: event.state, id, begin: at, end: null, outcome: 'running' };
        requests.push(request);
        asked.set(id, request);
      }
    } else if (kind === 'turn') {
      if (name === 'turn_start') {
        const turn = { kind: 'turn', seq, name: id, id, begin: at, end: null, outcome: 'running' };
        turns.push(turn);
        inTurn.set(id, turn);
      } else if (name === 'turn_end' && inTurn.has(id)) {
        Object.assign(inTurn.get(id), { end: at, outcome: 'ok' });
        inTurn.delete(id);
        drop(at, 'lost', (call) => call.turn === id);
      }
    } else if (kind === 'wait') {
      beginWait(event);
    } else if (kind === 'heartbeat') {
      beats.push(event);
    } else if (kind === 'idle' && name !== 'relay') {
      drop(at, 'lost');
    } else if (kind === 'end' || kind === 'start') {
      drop(at, 'lost');
      for (const turn of inTurn.values()) turn.end = at;
      for (const request of asked.values()) request.end = at;
      inTurn.clear();
      asked.clear();
      end = kind === 'end' ? { at, outcome: name } : null;
    }
  }
  return { calls, requests, turns, waits, beats, end };
}

/** How fast a counter that only rises rose, [[at, perSecond]]; null for one that also falls. */
function ratesOf(points) {
  const rates = [];
  for (const [at, [when, value]] of points.entries()) {
    const before = points[at - 1];
    if (!before) continue;
    if (value < before[1]) return null;
    if (when > before[0]) rates.push([when, (value - before[1]) * 1000 / (when - before[0])]);
  }
  return rates;
}

/** The middle one; of an even number the upper middle. */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** What is a step of an agent's work: its pace is the time between two. */
const isStep = new Set(['tool_result', 'error', 'tool_timeout', 'state_change']);

/** Less than this is shown as 0. */
export const leastShown = 0.05;

/**
 * What changes over time, as {name, unit, points: [[at, value]], usual}. Counters that only rise are shown by their
 * rate; those that also fall, as a context does that is compacted, by their value. What would be drawn as nothing is left out: only
 * zeros, and a pace of steps that mostly take no time. `events` are reduced ones.
 */
export function seriesOf(events) {
  const counters = new Map();
  const prompts = [];
  const paces = [];
  let last = null;
  for (const { at, kind, counters: values, done, total } of events) {
    for (const [name, value] of Object.entries(values ?? {})) {
      if (!counters.has(name)) counters.set(name, []);
      counters.get(name).push([at, value]);
    }
    if (total > 0) prompts.push([at, 100 * Math.min(done ?? 0, total) / total]);
    if (!isStep.has(kind)) continue;
    if (last !== null && at > last) paces.push([at, (at - last) / 1000]);
    last = at;
  }
  const found = [];
  for (const [key, points] of counters) {
    const name = key.replaceAll('_', ' ');
    const rates = ratesOf(points);
    if (rates?.length > 0) found.push({ name, unit: '/s', points: rates, usual: median(rates.map(([, rate]) => rate)), now: points.at(-1)[1] });
    else if (!rates) found.push({ name, unit: '', points, usual: null, now: null });
  }
  if (prompts.length > 1) found.push({ name: 'prompt read', unit: ' %', points: prompts, usual: null, now: null });
  const usual = paces.length > 2 ? median(paces.map(([, pace]) => pace)) : 0;
  if (usual >= leastShown) found.push({ name: 'seconds a step', unit: ' s', points: paces, usual, now: null });
  return found.filter(({ points }) => points.some(([, value]) => value >= leastShown));
}

/** Of points the highest of each pixel column, so that many are drawn as fast as few: [[x, value]]. */
export function thinned(points, x) {
  const columns = [];
  for (const [at, value] of points) {
    const left = Math.round(x(at));
    const last = columns.at(-1);
    if (last && last[0] === left) last[1] = Math.max(last[1], value);
    else columns.push([left, value]);
  }
  return columns;
}
