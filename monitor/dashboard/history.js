// The newest changes of health of all sessions, and the pieces that a session's time is made of.
// Knows nothing of the page.

/** The codes of patterns in words. */
const patternNames = {
  F1: 'iterations without a state change', F3: 'far below its pace', F4: 'no heartbeats', F5: 'the model server hangs', F6: 'a model check says so', F8: 'nothing moves',
  R1: 'the same call', R2: 'the same error', R3: 'a cycle of calls', R4: 'repeated calls', R5: 'one tool fails', R6: 'invalid calls',
  R7: 'the same message', R7b: 'messages only', R8: 'text that repeats itself', R9: 'a cycle of states', R10: 'compactions', R11: 'nothing new',
  R12: 'little new in its messages', R13: 'the same failure', R14: 'the same request', R15: 'the same turn',
};

/** Changes by session, each list oldest first. */
export class History {
  #changes = new Map();
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

  add({ sessionId, at, from, health, pattern }) {
    const list = this.#changes.get(sessionId);
    const change = { at, from, health, pattern };
    if (list) list.push(change);
    else this.#changes.set(sessionId, [change]);
  }

  changesOf = (id) => this.#changes.get(id) ?? [];
  all = () => this.#changes;

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
    let look = changes[0]?.from ?? row.health;
    for (const change of changes) {
      put(look, at, Math.min(change.at, until));
      ({ at, health: look } = change);
    }
    // Changes do not say for what a session waits or rests; its row does.
    if (['blocked', 'idle'].includes(look) && !row.endedAt) look = row.state ?? look;
    put(look, at, until);
    if (row.endedAt) put(row.state, row.endedAt, end);
    return list;
  }
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
