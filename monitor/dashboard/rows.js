// The sessions of the list: which are shown, and in which order. Knows nothing of the page.

import { isOver } from './alert.js';
import { attentions, needsYou, rank, states } from './health.js';

const keys = {
  session: (row) => row.title.toLowerCase(),
  // A question that can be answered here comes first: its agent gives up. Of those that need a person the one first that has waited
  // longest; else what changed last.
  state: (row) => (attentions.indexOf(row.attention) * 100 + (row.question ? 0 : 1 + rank(row.state))) * 1e14 +
    (attentions.indexOf(row.attention) <= attentions.indexOf('watch') ? row.stateSince : 1e13 - row.stateSince),
  doing: (row) => row.tool?.name ?? row.currentPhase ?? row.server?.state ?? '',
  iteration: (row) => row.iteration ?? -1,
  changes: (row) => row.stateChanges ?? -1,
  changed: (row) => -(row.lastChangeAt ?? 0),
  tokens: (row) => -(row.tokens ?? -1),
  heard: (row) => -(row.lastHeartbeatAt ?? 0),
  started: (row) => -row.createdAt,
};

const generationsMax = 5;

/** Words of an address, those alone that are among `known`. */
const chosen = (text, known) => new Set((text ?? '').split(',').filter((word) => known.includes(word)));

/** Older addresses name healths, of which `blocked` is two states. */
const ofHealths = (text) => (text ?? '').replace(/\bblocked\b/, 'needs_input,waiting');

/** What is asked of the list, as its address has it. */
export function wishFrom(search) {
  const given = new URLSearchParams(search);
  const sort = given.get('sort') ?? 'state';
  const key = sort.replace(/^-/, '');
  return {
    text: given.get('q') ?? given.get('search') ?? '',
    attentions: chosen(given.get('attention'), attentions),
    states: chosen(given.get('state') ?? ofHealths(given.get('health')), states),
    lifecycle: given.get('lifecycle') ?? '',
    agent: given.get('agent') ?? '',
    sort: key in keys ? key : 'state',
    descending: sort.startsWith('-'),
    families: given.get('families') === '1',
  };
}

export function searchOf(wish) {
  const given = new URLSearchParams();
  if (wish.text) given.set('q', wish.text);
  if (wish.attentions.size > 0) given.set('attention', [...wish.attentions].join(','));
  if (wish.states.size > 0) given.set('state', [...wish.states].join(','));
  if (wish.lifecycle) given.set('lifecycle', wish.lifecycle);
  if (wish.agent) given.set('agent', wish.agent);
  if (wish.sort !== 'state' || wish.descending) given.set('sort', (wish.descending ? '-' : '') + wish.sort);
  if (wish.families) given.set('families', '1');
  const text = given.toString().replaceAll('%2C', ',');
  return text ? `?${text}` : '';
}

export const isFiltered = (wish) =>
  Boolean(wish.text || wish.attentions.size || wish.states.size || wish.lifecycle || wish.agent);

function textOf(row) {
  row.text ??= [row.title, row.sessionId, row.agent, row.directory, row.task, row.parentSessionId, row.reason, row.lastMessage,
                row.currentPhase, row.tool?.name, row.tool?.command, row.server?.state,
                ...Object.entries(row.labels ?? {}).map((label) => label.join(':'))].filter(Boolean).join('\n').toLowerCase();
  return row.text;
}

function matches(row, wish) {
  if (wish.lifecycle === 'open' ? row.endedAt : wish.lifecycle && row.lifecycle !== wish.lifecycle) return false;
  // Chips of both kinds add up: needs you, and besides those that are slow.
  const any = wish.attentions.size + wish.states.size === 0;
  if (!any && !wish.attentions.has(row.attention) && !wish.states.has(row.state)) return false;
  if (wish.agent && row.agent !== wish.agent) return false;
  return !wish.text || textOf(row).includes(wish.text.toLowerCase());
}

/** The rows by the wish, of equals the newest first. Each key is made once. */
function sorted(rows, wish) {
  const key = keys[wish.sort];
  const sign = wish.descending ? -1 : 1;
  return rows.map((row) => ({ row, x: key(row) })).sort((a, b) => {
    if (a.x !== b.x) return a.x < b.x ? -sign : sign;
    return b.row.createdAt - a.row.createdAt || (a.row.sessionId < b.row.sessionId ? -1 : 1);
  }).map(({ row }) => row);
}

/** {row, depth}: children behind their parents, families by their first member. */
export function families(sorted) {
  const shown = new Map(sorted.map((row) => [row.sessionId, row]));
  const children = new Map();
  const roots = [];
  const rootOf = (row) => {
    const seen = new Set();
    let at = row;
    while (shown.has(at.parentSessionId) && !seen.has(at)) {
      seen.add(at);
      at = shown.get(at.parentSessionId);
    }
    return at;
  };
  const known = new Set();
  for (const row of sorted) {
    const parent = shown.get(row.parentSessionId);
    if (parent && !children.get(parent)?.push(row)) children.set(parent, [row]);
    const root = rootOf(row);  // a family stands where its first member would
    if (!known.has(root)) {
      known.add(root);
      roots.push(root);
    }
  }
  const list = [];
  const placed = new Set();
  const place = (row, depth) => {
    if (placed.has(row)) return;  // agents choose whom they name: it may go in a circle
    placed.add(row);
    list.push({ row, depth });
    for (const child of children.get(row) ?? []) place(child, Math.min(depth + 1, generationsMax));
  };
  for (const root of roots) place(root, 0);
  return list;
}

const settledMs = 24 * 3600 * 1000;  // as long as an end needs a person, if nobody acknowledges it

/** All sessions that are known, by id. */
export class Rows {
  all = new Map();
  #alerts = new Map();  // of each session the newest
  #now = 0;             // when they were loaded
  #incoming = null;

  /** A piece of a snapshot: the last one makes those go that it did not name. */
  snapshot(rows, complete) {
    this.#incoming ??= new Set();
    for (const row of rows) {
      this.#incoming.add(row.sessionId);
      this.set(row);
    }
    if (!complete) return;
    for (const id of this.all.keys()) {
      if (!this.#incoming.has(id)) this.all.delete(id);
    }
    this.#incoming = null;
  }

  set(row) {
    this.#incoming?.add(row.sessionId);
    row.given ??= row.attention;
    this.all.set(row.sessionId, row);
    this.#settle(row);
  }

  /** The newest alerts, the newest first; returns whether another session needs a person now. */
  setAlerts(alerts, now) {
    this.#alerts = new Map([...alerts].reverse().map((alert) => [alert.sessionId, alert]));
    this.#now = now;
    let changed = false;
    for (const row of this.all.values()) changed = this.#settle(row) || changed;
    return changed;
  }

  /** Returns the alert about the present state of a session. Returns undefined if none was loaded. */
  alertOf({ sessionId, state, stateSince }) {
    const alert = this.#alerts.get(sessionId);
    return alert && alert.health === state && alert.at >= stateSince - 1000 && !isOver(alert) ? alert : undefined;
  }

  /** A session that somebody looks after, or that died long ago, needs nobody else. */
  #settle(row) {
    const now = Math.max(this.#now, row.now ?? 0);
    const before = row.attention;
    const alert = this.alertOf(row);
    const known = alert && (alert.acknowledged || alert.snoozedUntil > now);
    const old = row.state === 'dead' && now - row.stateSince >= settledMs;
    row.attention = row.given === 'needs_you' && (known || old) ? (row.endedAt || row.state === 'dead' ? 'resting' : 'watch') : row.given;
    return row.attention !== before;
  }

  /** Those of the wish in its order, each with its depth in its family. */
  shown(wish) {
    const found = sorted([...this.all.values()].filter((row) => matches(row, wish)), wish);
    return wish.families ? families(found) : found.map((row) => ({ row, depth: 0 }));
  }

  /** Likewise, with a heading {attention, count} before each group where groups follow each other; `heads`: where these are. */
  grouped(wish) {
    const shown = this.shown(wish);
    if (wish.sort !== 'state' || wish.families) return { items: shown, heads: [], count: shown.length };
    const items = [];
    const heads = [];
    for (const item of shown) {
      if (items.at(-1)?.row?.attention !== item.row.attention) {
        heads.push(items.length);
        items.push({ attention: item.row.attention, count: 0 });
      }
      items[heads.at(-1)].count += 1;
      items.push(item);
    }
    return { items, heads, count: shown.length };
  }

  /** Tells each session above this one of it, where it is the worst below. */
  #updateAncestors(row, troubled) {
    let id = row.parentSessionId;
    for (let level = 0; id && level < generationsMax; ++level) {
      const known = troubled.get(id);
      if (!known || rank(row.state) < rank(known.state)) troubled.set(id, row);
      id = this.all.get(id)?.parentSessionId;
    }
  }

  /** How many there are of each state and attention, of those with children how many, and the agents; `troubled`: the worst below a session. */
  counts() {
    const words = new Map();
    const children = new Map();
    const troubled = new Map();
    const agents = new Set();
    const add = (to, word) => to.set(word, (to.get(word) ?? 0) + 1);
    let needed = 0;
    for (const row of this.all.values()) {
      add(words, row.state);
      add(words, row.attention);
      if (row.parentSessionId) add(children, row.parentSessionId);
      if (row.agent) agents.add(row.agent);
      if (!needsYou(row)) continue;
      ++needed;
      this.#updateAncestors(row, troubled);
    }
    return { words, children, troubled, agents: [...agents].sort(), needed };
  }
}
