// The newest changes of health of all sessions, and the pieces that a session's time is made of.
// Knows nothing of the page.

import { lookOfChange } from './health.js';

/** The codes of patterns in words. */
const patternNames = {
  F1: 'iterations without a state change', F3: 'far below its pace', F4: 'no heartbeats', F5: 'the model server hangs', F6: 'a model check says so', F8: 'nothing moves',
  R1: 'the same call', R2: 'the same error', R3: 'a cycle of calls', R4: 'repeated calls', R5: 'one tool fails', R6: 'invalid calls',
  R7: 'the same message', R7b: 'messages only', R8: 'text that repeats itself', R9: 'a cycle of states', R10: 'compactions', R11: 'nothing new',
  R12: 'little new in its messages', R13: 'the same failure', R14: 'the same request', R15: 'the same turn',
};

/** Looks that a change alone does not tell apart: for what a session waits, and whether its rest is a person's turn. */
const rests = new Set(['blocked', 'waiting', 'needs_input', 'idle']);

/** Changes by session, each list oldest first. */
export class History {
  #changes = new Map();
  #looks = new Map();  // of a session's waits, by when each began
  since = 0;

  fill({ since, changes }) {
    this.since = since;
    const known = this.#changes;
    this.#changes = new Map();
    for (const change of changes) this.add(change);
    // Meanwhile the stream may have brought changes that are newer than the answer.
    for (const [id, list] of known) {
      const newest = this.#changes.get(id)?.at(-1)?.at ?? 0;
      for (const change of list) if (change.at > newest) this.add({ sessionId: id, ...change });
    }
  }

  add({ sessionId, at, from, health, pattern, reason }) {
    const list = this.#changes.get(sessionId);
    const change = { at, from, health, pattern, reason };
    if (list) list.push(change);
    else this.#changes.set(sessionId, [change]);
  }

  changesOf = (id) => this.#changes.get(id) ?? [];
  all = () => this.#changes;

  /** The look since a change; `blocked`: for what the session waited is not known. */
  #lookOf = (id, change) => this.#looks.get(id)?.get(change.at) ?? lookOfChange(change);

  /** The look before the first change that is known. */
  #lookBefore(id, { at, from }) {
    if (from !== 'blocked') return from;
    const began = Math.max(...[...this.#looks.get(id)?.keys() ?? []].filter((time) => time < at));
    return this.#looks.get(id)?.get(began) ?? from;
  }

  /** Whether it is to be asked for what a session waited. Its row knows for what it waits now. */
  isVague({ sessionId, endedAt }) {
    const changes = this.changesOf(sessionId);
    const looks = this.#looks.get(sessionId);
    if (changes[0]?.from === 'blocked' && !looks) return true;
    return changes.some((change, at) => (endedAt || at + 1 < changes.length) && !looks?.has(change.at) && lookOfChange(change) === 'blocked');
  }

  /** The transitions of a session say for what it waited. What they do not say stays unknown. */
  explain(id, transitions) {
    const looks = new Map(this.changesOf(id).map((change) => [change.at, this.#lookOf(id, change)]));
    for (const change of transitions) looks.set(change.at, lookOfChange(change));
    for (const [at, look] of looks) if (!rests.has(look)) looks.delete(at);
    this.#looks.set(id, looks);
  }

  /** How long sessions waited for people between both moments: {ms, times, sessions}. */
  waitsOver(rows, begin, end) {
    const sum = { ms: 0, times: 0, sessions: 0 };
    for (const row of rows) {
      const waits = this.pieces(row, begin, row.endedAt ?? end).filter(({ look }) => look === 'needs_input');
      for (const wait of waits) sum.ms += wait.end - wait.begin;
      sum.times += waits.length;
      sum.sessions += waits.length > 0 ? 1 : 0;
    }
    return sum;
  }

  /** The session's time between both moments as {look, begin, end}; ends are pieces, too. */
  pieces(row, begin, end) {
    const list = [];
    const put = (look, from, to) => {
      const [first, last] = [Math.max(from, begin), Math.min(to, end)];
      if (last > first) list.push({ look, begin: first, end: last });
    };
    const changes = this.changesOf(row.sessionId).filter(({ at }) => at >= row.createdAt);
    const until = row.endedAt ?? end;
    let at = row.createdAt;
    let look = changes.length > 0 ? this.#lookBefore(row.sessionId, changes[0]) : row.health;
    for (const change of changes) {
      put(look, at, Math.min(change.at, until));
      at = change.at;
      look = this.#lookOf(row.sessionId, change);
    }
    if (rests.has(look) && !row.endedAt) look = row.state ?? look;  // its row knows how it is now
    put(look, at, until);
    if (row.endedAt) put(row.state, row.endedAt, end);
    return list;
  }
}

const pagesMax = 10;

/** Asks by `find` for what at most `most` of the sessions waited. Returns of how many that is still not known. */
export async function askWaits(history, rows, find, most) {
  const vague = rows.filter((row) => history.isVague(row));
  const asked = vague.slice(0, most);
  const ask = async ({ sessionId }) => {
    const found = [];
    for (let after = 0, page = 0; after !== null && page < pagesMax; ++page) {
      const answer = await find(`/api/autonomous/sessions/${encodeURIComponent(sessionId)}/transitions?after=${after}&limit=1000`);
      found.push(...answer?.transitions ?? []);
      after = answer?.next ?? null;
    }
    history.explain(sessionId, found);
  };
  const lane = async () => { for (let row; (row = asked.shift());) await ask(row); };
  await Promise.all(Array.from({ length: 4 }, lane));
  return vague.length - Math.min(vague.length, most);
}

/** How many sessions are of each look at `count` moments from `begin` to `end`: Map look → numbers. */
export function countsOver(rows, history, begin, end, count) {
  const step = (end - begin) / count;
  const counts = new Map();
  for (const row of rows) {
    if (row.endedAt && row.endedAt < begin) continue;
    for (const piece of history.pieces(row, begin, row.endedAt ?? end)) {
      if (!counts.has(piece.look)) counts.set(piece.look, new Array(count).fill(0));
      const numbers = counts.get(piece.look);
      const first = Math.max(0, Math.ceil((piece.begin - begin) / step - 1));
      const last = Math.min(count - 1, Math.ceil((piece.end - begin) / step - 1) - (piece.end < end ? 1 : 0));
      for (let at = first; at <= last; ++at) numbers[at] += 1;
    }
  }
  return counts;
}

/** What went wrong most: {look, what, agent, named, count}, the most frequent first. */
export function troubles(rows, history) {
  const agents = new Map(rows.map((row) => [row.sessionId, row.agent]));
  const found = new Map();
  const count = (look, what, agent) => {
    const key = `${look}\n${what}\n${agent}`;
    if (!found.has(key)) found.set(key, { look, what, agent: agent ?? 'unnamed agents', named: Boolean(agent), count: 0 });
    found.get(key).count += 1;
  };
  for (const [id, changes] of history.all()) {
    for (const { health, pattern } of changes)
      if (['stuck', 'looping', 'dead', 'silent'].includes(health)) count(health, patternNames[pattern] ?? pattern ?? '', agents.get(id));
  }
  for (const row of rows)
    if (row.endedAt > history.since && ['failed', 'incomplete'].includes(row.outcome)) count(row.outcome, row.reason, row.agent);
  return [...found.values()].sort((a, b) => b.count - a.count);
}
