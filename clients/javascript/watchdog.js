// Reports an agent's progress to watchdog-monitor, and waits for sessions. One file for Node >= 20.19, Bun, Deno and browsers,
// without dependencies. The file watchdog.d.ts documents each part.

const queueMax = 10_000;  // events
const queueCharsMax = 8 << 20;
const batchMax = 500;  // events
const batchCharsMax = 1 << 19;
const contentMax = 64 << 10;  // characters of arguments, results, data; beyond that the digest of the whole goes along
const wholeMax = 128 << 10;  // characters of JSON that are made, and of a text that is digested; beyond that nothing is comparable
const valuesMax = 4000;  // objects and texts of data that are read; numbers in lists count by their characters alone
const wholeTextMax = 2 << 20;  // characters of a text that is digested where the runtime does it quickly
const nameMax = 256;  // bytes
const coalesceMin = 256;  // pending events; below that each heartbeat is sent on its own
const heartbeatLinger = 50;  // ms
const countLinger = 1000;
const answerMax = 10_000;  // without an answer the request is given up, not the reports
const quietMax = 40_000;  // of a wait, which the monitor answers within 25 s
const retryMin = 100;
const retryMax = 5000;
const timerMax = 2 ** 31 - 1;  // a longer time would end at once
const refusedPause = 30_000;
const exitMax = 2000;
const absentMax = 200;  // at an exit, if no monitor was there from the start
const pollEvery = 2000;
const pollMax = 2000;  // without an answer
const lastWordMax = 2000;  // a signal waits that long for the monitor
const endedMax = 100;  // sessions of this process that have ended and are not delivered
const yieldedMax = 100;  // values of a generator that its result shows

const sessions = '/api/autonomous/sessions';

/** A variable of the environment. Deno throws without the permission to read it. */
function variable(key) {
  try {
    return globalThis.process?.env?.[key];
  } catch {
    return undefined;
  }
}

function builtin(module) {
  try {
    return globalThis.process?.getBuiltinModule?.(module);
  } catch {
    return undefined;
  }
}

const random = (bytes) => Array.from({ length: bytes }, () => Math.floor(Math.random() * 256).toString(16).padStart(2, '0')).join('');
const jittered = (ms) => ms * (0.5 + Math.random() / 2);

// --- Words of schemas/event.schema.json, written by scripts/docs --generate
const everyKind = 'kind event_id seq ts_ms name call_id text result_hash expect_quiet_ms'.split(' ');
const kinds = {
  start: 'pid start_ticks boot_id host',
  heartbeat: 'phase iteration source counters',
  state_change: 'type data',
  tool_call: 'turn_id args args_hash deadline_ms',
  tool_result: '',
  error: '',
  message: '',
  wait: 'until_ms provider waiting_for',
  idle: '',
  user_input: '',
  compaction: '',
  opinion: 'status confidence seen_seq state',
  chant: '',
  retry: '',
  budget: 'stage axis max_pressure current_step max_steps steps_remaining step_pressure elapsed_seconds remaining_seconds ' +
    'time_pressure time_enforced elapsed_ms duration_ms tool_calls max_tool_calls tokens max_tokens cost max_cost',
  limit: 'limit limit_value reached enforced',
  turn: 'tool_calls parent_turn_id depth reason',
  tool_progress: 'elapsed_ms value total output_bytes accepted',
  tool_timeout: 'elapsed_ms limit_kind limit_ms still_running',
  evidence: 'state done left_ms total',
  resume: 'waiting_for',
  end: 'outcome reason subject error',
};
// --- end of the words

// --- Making events ----------------------------------------------------------------------------------------------------

function printed(value) {
  try {
    return String(value);
  } catch {
    return `<${typeof value}>`;
  }
}

let opaques = 0;
const letters = (number, count) => Array.from({ length: count }, () => {
  const letter = String.fromCharCode(97 + (number % 26));
  number = Math.floor(number / 26);
  return letter;
}).join('');
const ofProcess = letters(Math.floor(Math.random() * 26 ** 8), 8);

/** What cannot be printed gets a word that no other report has: a monitor compares texts. */
const opaque = (text) => `${text} (opaque ${ofProcess}${letters(opaques++, 5)})`;

function errorText(error) {
  const parts = [];
  for (let one = error; one != null && parts.length < 8; one = one instanceof Error ? one.cause : null) {
    parts.push(oneError(one));
  }
  return parts.join(', caused by ');
}

const oneError = (error) => (error instanceof Error && error.message?.length > wholeMax ? `${error.name}: ${shortened(error.message)}` : printed(error));

const privates = new WeakMap();  // class → whether its source has private fields, or cannot be read

const readable = new Set([Object, Array, Map, Set].map(({ prototype }) => prototype));

/** Whether objects of this prototype hold something that no property shows. */
function isClosed(prototype) {
  for (let one = prototype; one && !readable.has(one); one = Object.getPrototypeOf(one)) {
    const made = Object.hasOwn(one, 'constructor') ? one.constructor : null;
    if (typeof made !== 'function') continue;
    if (!privates.has(made)) privates.set(made, /#[\w$]|\{\s*\[native code\]\s*\}/.test(Function.prototype.toString.call(made)));
    if (privates.get(made)) return true;
  }
  return false;
}

const shortened = (text) => opaque(`${text.slice(0, contentMax)}… (${text.length} characters)`);

/** A value that JSON has no form for, or a false one: as data if it has any, else as a text. */
function asData(value) {
  if (typeof value === 'bigint') return BigInt.asIntN(1 << 15, value) === value ? String(value) : opaque('[bigint]');
  if (typeof value === 'symbol') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value !== 'object' || value === null) return value;
  const prototype = Object.getPrototypeOf(value);
  if (readable.has(prototype) || prototype === null) return value;
  if (value instanceof Error) {
    const { name: kind, message, cause, errors } = value;
    return { error: `${kind}: ${message?.length > wholeMax ? shortened(message) : message}`, ...(cause === undefined ? {} : { cause }), ...(errors === undefined ? {} : { errors }), ...value };
  }
  if (isList(value)) return !ArrayBuffer.isView(value) && isClosed(prototype) ? [...value, opaque('…')] : value;
  if (value instanceof AbortSignal) return '[AbortSignal]';
  if (value instanceof ArrayBuffer) return bytesText(new Uint8Array(value));
  if (ArrayBuffer.isView(value)) return value instanceof DataView ? opaque('[object DataView]') : bytesText(value);
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return asData(value.valueOf());
  if (!isClosed(prototype) && Object.keys(value).length > 0) return value;
  const text = printed(value);
  return /^\[object |^</.test(text) ? opaque(text) : text;
}

/** Whether it is printed as the list of its elements. */
const isList = (value) => Array.isArray(value) || value instanceof Map || value instanceof Set ||
  ArrayBuffer.isView(value) && !(value instanceof DataView) && !(value instanceof Uint8Array);

const asText = (bytes) => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {  // Other bytes are another text.
    return new TextDecoder('latin1').decode(bytes);
  }
};

/** Bytes as a text; many of them are cut, and comparable with nothing. */
const bytesText = (bytes) => (bytes.length <= wholeMax ? asText(bytes) : opaque(`${asText(bytes.subarray(0, contentMax))}… (${bytes.length} bytes)`));

/** JSON in which halves of surrogate pairs are replaced, as they are no UTF-8. */
const wellFormed = (json) => (!json.includes('\\ud') ? json : json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found.length === 2 ? found : '\ufffd')));

const full = Symbol('full');

/** Whether an object holds more than JSON shows of it: keys that are symbols or hidden, other keys of a list. */
function hidesKeys(data, shown) {
  if (Array.isArray(data)) return data.length <= valuesMax && Reflect.ownKeys(data).at(-1) !== 'length';  // The last of its own keys.
  return Reflect.ownKeys(data).length !== shown;
}

/**
 * JSON of any value, with its depth. A circle is cut where it closes. The work ends at `limit` characters or `values`: then it `isCut`.
 * With a limit the text is for comparing: what only functions and hidden keys know is opaque in it.
 */
function encoded(root, limit = Infinity, values = Infinity) {
  const compares = limit !== Infinity;
  const above = [];
  let text = '';
  let depth = 0;
  let isFull = false;
  const write = (piece) => {
    text += piece;
    if (text.length > limit) throw full;
  };
  const cut = (whole) => (whole.length > limit - text.length ? whole.slice(0, Math.max(0, limit - text.length) + 1) : whole);
  const known = (value, key) => {
    const hasForm = typeof value === 'bigint' || typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);
    return asData(hasForm && typeof value.toJSON === 'function' ? value.toJSON(key) : value);
  };
  const isNothing = (value) => value === undefined || typeof value === 'function';
  const print = (value, data) => {
    if (--values < 0) {
      isFull = true;
      throw full;
    }
    if (typeof data === 'string') return write(JSON.stringify(cut(data)));
    if (compares && typeof data === 'function') return write(`"${opaque('[function]')}"`);
    if (typeof data !== 'object' || data === null) return write(isNothing(data) ? 'null' : String(data));
    const at = above.indexOf(value);
    if (at >= 0) return write(`"[circle: ${above.length - at} up]"`);
    above.push(value);
    depth = Math.max(depth, above.length);
    let separator = '';
    if (isList(data)) {
      write('[');
      for (const item of data) {
        if (Number.isFinite(item)) write(`${separator}${item}`);
        else {
          write(separator);
          print(item, known(item, ''));
        }
        separator = ',';
      }
      if (compares && Array.isArray(data) && hidesKeys(data)) write(`${separator}"${opaque('…')}"`);
      write(']');
    } else {
      write('{');
      const keys = Object.keys(data);
      let hides = false;
      for (const key of keys) {
        const member = data[key];
        const shown = known(member, key);
        hides ||= typeof shown === 'function';
        if (isNothing(shown)) continue;
        write(`${separator}${JSON.stringify(cut(key))}:`);
        print(member, shown);
        separator = ',';
      }
      if (compares && (hides || hidesKeys(data, keys.length))) write(`${separator}"…":"${opaque('…')}"`);
      write('}');
    }
    above.pop();
  };
  const data = known(root, '');
  if (isNothing(data)) return { text: undefined };
  try {
    print(root, data);
  } catch (error) {
    if (error !== full) throw error;
  }
  return { isCut: isFull || text.length > limit, text: wellFormed(text), depth };
}

const toJson = (root) => encoded(root).text;

/** Of a text, 53 bits: tells texts apart whose ends were cut. */
function digest(text) {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; ++at) {
    high = Math.imul(high ^ text.charCodeAt(at), 2654435761);
    low = Math.imul(low ^ text.charCodeAt(at), 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (high >>> 0).toString(16).padStart(8, '0') + (low >>> 0).toString(16).padStart(8, '0');
}

const native = builtin('node:crypto');

const incomparable = () => `opaque-${ofProcess}${letters(opaques++, 5)}`;

/** Of a whole text, or a word that no other has: a long one would hold the agent up. */
function comparable(text) {
  if (text.length <= wholeMax) return digest(text);
  if (text.length > wholeTextMax || !native?.createHash) return incomparable();
  return native.createHash('sha1').update(text).digest('hex').slice(0, 16);
}

/** A field that may be large, or no JSON at all: cut, with the digest of the whole beside it. As JSON. */
function content(key, value, digestKey) {
  let isCut = false;
  if (value instanceof Uint8Array) value = bytesText(value);
  if (typeof value !== 'string') {
    let text;
    try {
      let depth;
      ({ text, depth, isCut } = encoded(value, wholeMax, valuesMax));
      if (text.length <= contentMax && depth <= 60 && !isCut) return { [key]: text };
    } catch {  // a function, nothing at all, or a method of it that throws
      text = printed(value);
      if (typeof value === 'function' || /^\[object |^</.test(text)) text = opaque(text);
    }
    value = text;
  }
  if (value.length <= contentMax && !isCut) return { [key]: toJson(value) };
  const size = isCut ? 'cut' : `${value.length} characters`;
  return { [key]: toJson(`${value.slice(0, contentMax)}… (${size})`), [digestKey]: toJson(isCut ? incomparable() : comparable(value)) };
}

function name(value) {
  const text = (typeof value === 'string' ? value : printed(value)).slice(0, nameMax);
  if (text.length * 3 <= nameMax) return text;
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, nameMax - 3));
}

const fieldsOf = new Map(Object.entries(kinds).map(([kind, own]) => [kind, new Set([...own.split(' ').filter(Boolean), ...everyKind])]));

/** How many characters must be inserted, removed or replaced to make one word the other. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 0; at < one.length; ++at) {
    const next = [at + 1];
    for (let to = 0; to < other.length; ++to) {
      next.push(Math.min(next[to] + 1, row[to + 1] + 1, row[to] + (one[at] === other[to] ? 0 : 1)));
    }
    row = next;
  }
  return row[other.length];
}

function nearest(word, right) {
  const begun = right.find((one) => word && one.startsWith(word));
  if (begun) return begun;
  const [least, near] = right.map((one) => [distance(word, one), one]).sort(([one], [other]) => one - other)[0];
  if (least <= Math.ceil(Math.max(word.length, near.length) / 3)) return near;
  return word && right.find((one) => one.includes(word));
}

/** The first word that no monitor understands, and what to say about it. */
function wrongWord(kind, fields) {
  const own = fieldsOf.get(kind);
  const word = own ? Object.keys(fields ?? {}).find((field) => !own.has(field)) : name(kind);
  if (word === undefined) return null;
  const right = own ? [...own] : Object.keys(kinds);
  const near = nearest(word.slice(0, nameMax), right);
  return { word, text: `"${word}" is not a ${own ? `field of the event ${kind}` : 'kind of event'}, and a monitor ignores it. ` +
                       `${near ? `Did you mean "${near}"? ` : ''}The right words are ${right.join(', ')}.` };
}

const saidMax = 100;
const said = new Map();  // mistakes, with the word that is wrong

/** Who runs the session, so that a monitor on the same machine notices a death. */
async function processFacts() {
  if (!globalThis.process?.versions?.node) return {};
  const facts = { pid: process.pid };
  try {
    const [fs, os] = ['node:fs', 'node:os'];  // Not to be looked for by what bundles for browsers.
    facts.host = (await import(/* @vite-ignore */ os)).hostname();
    const { readFileSync } = await import(/* @vite-ignore */ fs);
    facts.start_ticks = Number(readFileSync('/proc/self/stat', 'utf8').split(')').at(-1).trim().split(' ')[19]);
    facts.boot_id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch { /* no /proc */ }
  return facts;
}

// --- Talking to the monitor -------------------------------------------------------------------------------------------

export class MonitorError extends Error {
  constructor(status, message, { line, retryAfter = 0 } = {}) {
    super(`${status} ${message}`);
    this.name = 'MonitorError';
    Object.assign(this, { status, line, retryAfter });
  }
}

async function errorOf(response) {
  const text = await response.text();
  let error = { message: text.slice(0, 200) };
  try {
    error = JSON.parse(text).error ?? error;
  } catch { /* no answer of a monitor */ }
  return new MonitorError(response.status, error.message, { line: error.line, retryAfter: (Number(response.headers.get('Retry-After')) || 0) * 1000 });
}

const silence = new Error('it does not answer');

/** Whether nothing listens there. A connection that broke is another matter. */
const isAbsent = ({ cause, code, message }) =>
  /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|connection ?refused|bad port|net access/i.test([code, message, cause?.code, cause?.message].join());

// That of the import: a test may replace the global one later, and the reports are none of its requests.
const importedFetch = globalThis.fetch;

/** Bun and Deno send what fetch asks through the proxy of the environment, also to this machine. Prompts stay here. */
function direct(url, { method, body, signal, headers }) {
  return new Promise((done, fail) => {
    const { request } = builtin('node:http');
    const sent = request(url, { method, signal, headers }, (answer) => {
      const pieces = [];
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('error', fail);
      answer.on('end', () => done({
        ok: answer.statusCode >= 200 && answer.statusCode < 300,
        status: answer.statusCode,
        headers: { get: (key) => answer.headers[key.toLowerCase()] ?? null },
        text: async () => asText(Buffer.concat(pieces)),
      }));
    });
    sent.on('error', (error) => fail(signal?.aborted ? signal.reason : error));
    sent.end(body);
  });
}

const isDirect = (base) => (globalThis.Bun || globalThis.Deno || variable('NODE_USE_ENV_PROXY')) && builtin('node:http') &&
  /^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/i.test(base);

class Door {
  constructor(server, token, fetch) {
    this.server = server ?? variable('WATCHDOG_SERVER') ?? 'http://127.0.0.1:3000';
    this.base = (this.server.includes('://') ? this.server : `http://${this.server}`).replace(/\/+$/, '');
    this.fetch = fetch ?? (isDirect(this.base) ? direct : importedFetch);
    token ??= variable('WATCHDOG_TOKEN');
    this.headers = token ? { Authorization: `Bearer ${token}` } : {};
  }

  open(method, path, { body, signal, headers } = {}) {
    const { fetch } = this;  // A browser's fetch has no other `this`.
    return fetch(this.base + path, { method, body, signal, cache: 'no-store', headers: { ...this.headers, ...headers } });
  }

  async ask(method, path, { body, signal, limit = answerMax } = {}) {
    const given = new AbortController();
    const stop = () => given.abort(signal?.reason);
    const timer = setTimeout(() => given.abort(silence), limit);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const response = await this.open(method, path, { body, signal: given.signal });
      if (!response.ok) throw await errorOf(response);
      const text = await response.text();
      try {
        return JSON.parse(text || 'null');
      } catch {
        throw new MonitorError(502, 'the answer is not from a watchdog-monitor');
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    }
  }
}

// --- Reporting --------------------------------------------------------------------------------------------------------

export class Cancelled extends Error {
  constructor({ by, reason }) {
    super(reason ? `${by}: ${reason}` : by);
    this.name = 'Cancelled';
  }
}

const [beatRank, restRank, changeRank, endRank] = [0, 1, 2, 3];  // what goes first when the queue is full
const ranks = { heartbeat: beatRank, state_change: changeRank, start: endRank, end: endRank };
const names = new Set(['name', 'type', 'call_id', 'turn_id', 'waiting_for', 'provider', 'reason', 'phase', 'host']);

const threads = builtin('node:worker_threads');
const signals = ['SIGINT', 'SIGTERM'];

// What all copies of this module in a process have in common: a bundler, a test runner or npm may load several.
const common = globalThis[Symbol.for('watchdog-client')] ??= (() => {
  const host = globalThis.process;
  const { AsyncLocalStorage } = builtin('node:async_hooks') ?? {};
  const made = {
    open: new Map(),  // facts of reporters that have not ended their session → the reporter, weakly
    unsent: new Map(),  // reporters with reports that no monitor has acknowledged → how to ask and close them
    lastWords: new Set(),  // what is done before a signal ends this process, if nobody else listens to it
    storage: AsyncLocalStorage ? new AsyncLocalStorage() : null,
    async signalled(signal) {
      if (host.listenerCount(signal) > 1) return;  // Somebody else listens now, and decides.
      for (const one of signals) host.off(one, made.signalled);  // A second signal ends it at once.
      let timer;
      const last = [];
      const late = new Promise((done) => { timer = setTimeout(done, lastWordMax + 500); });
      await Promise.race([late, Promise.allSettled([...made.lastWords].map(async (act) => last.push(await act(signal))))]);
      clearTimeout(timer);
      for (const act of last) if (typeof act === 'function') act();
      host.kill(host.pid, signal);
    },
  };
  try {
    host?.once?.('exit', () => { for (const { say } of made.unsent.values()) say(); });
  } catch { /* no process that exits */ }
  return made;
})();
const { open, unsent, lastWords, storage } = common;
const exits = common.exits ??= new Map();  // server → what all exits of this process may still wait for it

/** `left`: ms for a server that is absent. `vain`: an exit has waited for it as long as it may. */
function exitOf(server) {
  if (!exits.has(server)) exits.set(server, { left: absentMax, vain: false });
  return exits.get(server);
}

const within = (store, act) => (storage ? storage.run(store, act) : act());
const beginCall = Symbol.for('watchdog-client.begin');

// A worker thread has a copy of the facts that its parent had when it started the worker.
let ofParents = [];
try {
  if (threads && !threads.isMainThread) ofParents = threads.getEnvironmentData('watchdog-client') ?? [];
} catch { /* no such threads here */ }
// A program that an agent starts has $WATCHDOG_SESSION of the agent, which has that open.
const [, starter, itsSession] = /^(\d+) (.+)$/.exec(variable('WATCHDOG_REPORTER') ?? '') ?? [];
if (starter && Number(starter) !== globalThis.process.pid) {
  ofParents = [...ofParents, { session: itsSession, server: new Door().server, running: true, process: Number(starter) }];
}

function isAlive(process) {
  try {
    return globalThis.process.kill(process, 0);
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

/** Tells worker threads and programs that this one starts which sessions are open. */
function tellChildren() {
  try {
    threads?.setEnvironmentData('watchdog-client', [...ofParents, ...open.keys()]);
  } catch { /* none can be told */ }
  const { process: host } = globalThis;
  const [of] = [...open.keys()].filter(({ isOfEnvironment }) => isOfEnvironment);
  try {
    if (of) host.env.WATCHDOG_REPORTER = `${host.pid} ${of.session}`;
    else if (host.env.WATCHDOG_REPORTER?.startsWith(`${host.pid} `)) delete host.env.WATCHDOG_REPORTER;
  } catch { /* no environment, or no permission */ }
}

/** A reporter that its program has forgotten must not keep its session looking alive. */
const forgotten = new FinalizationRegistry(({ facts, interval }) => {
  clearInterval(interval);
  if (open.delete(facts)) tellChildren();
});

/** Limits the number of sessions that have ended and wait for a monitor. */
function giveUpOldest() {
  const [oldest, ...others] = [...unsent.values()].filter(({ hasEnded }) => hasEnded());
  if (others.length >= endedMax) oldest.close();
}

/** Has `act` done before a signal ends the process, and then what `act` returns. Returns what forgets it. For the other files of this package. */
export function beforeSignal(act) {
  const host = globalThis.process;
  lastWords.add(act);
  if (!host?.listenerCount || threads?.isMainThread === false) return () => lastWords.delete(act);
  try {
    for (const signal of signals) if (host.listenerCount(signal) === 0) host.on(signal, common.signalled);
  } catch { /* no signals here */ }
  return () => {
    lastWords.delete(act);
    if (lastWords.size === 0) for (const signal of signals) host.off(signal, common.signalled);
  };
}

const sessionId = (wanted) => printed(wanted).replace(/[^A-Za-z0-9._:@-]/g, '-').slice(0, 128);

export class Reporter {
  session;
  cancel = null;
  aborts = [];
  dropped = 0;
  rejected = 0;

  #door;
  #options;
  #spec;
  #queue = [];
  #chars = 0;
  #flight = [];
  #batch = batchMax;
  #made = false;
  #ended = false;
  #closed = false;
  #totals = {};
  #counted = false;
  #reportedDropped = 0;
  #ids = 0;
  #prefix = `${Date.now().toString(16).padStart(12, '0')}-${random(4)}-`;
  #timer = null;
  #due = Infinity;
  #pumping = false;
  #failures = 0;
  #interval = null;
  #waiting = [];
  #complained = '';
  #cancelled = new AbortController();
  #calls = new Map();
  #leaving = new AbortController();
  #mistake = null;  // that the monitor found, and that nobody has thrown yet
  #ready;
  #facts = null;  // while it may end its session
  #acknowledged = false;
  #absent = false;  // The last attempt found no monitor.
  #trouble = '';  // why the last attempt failed
  #asked = 0;  // when the monitor answered last
  #beaten = performance.now();

  /** The reporter whose `run` or `tool` calls this; without one the only open reporter. */
  static current() {
    const found = storage?.getStore()?.reporter;
    if (found) return found;
    const [one, ...others] = [...open].filter(([facts]) => storage === null || !facts.running).map(([, reporter]) => reporter.deref());
    return others.length === 0 ? one : undefined;
  }

  /** The call of the `tool` or `wrap` that calls this. */
  static currentCall() {
    return storage?.getStore()?.call;
  }

  constructor(session, options = {}) {
    this.#options = { interval: options.policy?.heartbeatInterval ?? 10_000, poll: pollEvery, queueMax, log: (text) => console.warn(text), ...options };
    this.#door = new Door(options.server, options.token, options.fetch);
    const wanted = session || variable('WATCHDOG_SESSION') || `${options.agent ?? 'agent'}-${Date.now().toString(16)}-${random(3)}`;
    this.session = sessionId(wanted);
    const { agent, task, title, labels, policy, content: kept } = options;
    let { parent } = options;
    let isOfEnvironment = !session && Boolean(variable('WATCHDOG_SESSION'));
    if (!session && this.#isShared()) {
      isOfEnvironment = false;
      parent ??= this.session;
      this.session = sessionId(`${this.session.slice(0, 80)}-${printed(agent ?? 'agent').slice(0, 32)}-${random(4)}`);
    }
    this.#spec = { agent, task, title, labels, parentSessionId: parent, policy, content: kept };
    if (!this.#door.server) return;
    this.#facts = { session: this.session, server: this.#door.server, running: false, isOfEnvironment };
    open.set(this.#facts, new WeakRef(this));
    tellChildren();
    const begun = Date.now();
    this.#ready = processFacts().then((facts) => {
      this.#queue.unshift(this.#pending('start', Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, toJson(value)])), undefined, begun));
      this.#rouse(0);
    });
    const every = Math.min(this.#options.interval || Infinity, this.#options.interval && this.#options.poll || Infinity);
    if (every !== Infinity) {
      this.#interval = Reporter.#ticking(new WeakRef(this), every);
    }
    forgotten.register(this, { facts: this.#facts, interval: this.#interval });
  }

  /** A timer with a scope of its own, which does not hold the reporter. */
  static #ticking(weak, every) {
    const interval = setInterval(() => weak.deref()?.#tick(every), every);
    interval.unref?.();
    return interval;
  }

  // The reports of agents.

  heartbeat(iteration, phase, more) {
    this.#throwMistake();
    this.#heartbeat(iteration, phase, more);
  }

  #heartbeat(iteration, phase, { counters, source = 'loop', expectQuietMs } = {}) {
    this.#report('heartbeat', { source, iteration, phase, counters: counters || null, expect_quiet_ms: expectQuietMs == null ? null : Math.round(expectQuietMs) });
  }

  stateChange(type, data) {
    this.report('state_change', { type, data });
  }

  count(more) {
    for (const [key, number] of Object.entries(more ?? {})) this.#totals[key] = (this.#totals[key] ?? 0) + number;
    this.#counted = true;
    this.#rouse(countLinger);
  }

  async tool(tool, args, work, options) {
    const { call, ended, failed } = this[beginCall](tool, args, options);
    try {
      const result = await within({ reporter: this, call }, () => work(call));
      ended(result);
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  }

  wrap(work, options) {
    return wrap(work, { ...options, reporter: this });
  }

  /** Reports that a call began. Its end is reported by `ended` or `failed`. */
  [beginCall](tool, args, { callId = `call-${random(6)}`, turnId, deadlineMs } = {}) {
    const stop = new AbortController();
    const cancelled = () => stop.abort(this.signal.reason);
    let accepted = 0;
    let timer;
    const restart = () => {
      clearTimeout(timer);
      if (!(deadlineMs > 0 && deadlineMs <= timerMax)) return;
      const late = new DOMException(`${tool}: no progress for ${deadlineMs} ms`, 'TimeoutError');
      timer = setTimeout(() => stop.abort(late), deadlineMs);
      timer.unref?.();
    };
    const call = {
      callId,
      signal: stop.signal,
      progress: (text, { value, total } = {}) => {
        restart();
        this.report('tool_progress', { name: tool, call_id: callId, text, value, total, accepted: ++accepted });
      },
    };
    const release = () => {
      clearTimeout(timer);
      this.#calls.delete(callId);
      this.signal.removeEventListener('abort', cancelled);
    };
    if (this.cancelled) cancelled();
    this.signal.addEventListener('abort', cancelled, { once: true });
    this.#calls.set(callId, { turnId, stop });
    this.toolCall(tool, args, callId, { turnId, deadlineMs });
    restart();
    return {
      call,
      ended: (result) => { release(); this.toolResult(tool, result, callId); },
      failed: (error) => { release(); this.toolError(tool, error, callId); },
    };
  }

  toolCall(tool, args, callId, { turnId, deadlineMs } = {}) {
    this.report('tool_call', { name: tool, args, call_id: callId, turn_id: turnId, deadline_ms: deadlineMs });
  }

  toolResult(tool, result, callId) {
    this.report('tool_result', { name: tool, text: result, call_id: callId });
  }

  toolError(tool, error, callId) {
    this.report('error', { name: tool, text: error instanceof Error ? errorText(error) : error ?? printed(error), call_id: callId });
  }

  message(role, text) {
    this.report('message', { name: role, text });
  }

  waitFor(what, text, until) {
    this.report('wait', { waiting_for: what, text, ...(until === undefined ? {} : { until_ms: Number(until) }) });
  }

  report(kind, fields = {}) {
    this.#throwMistake();
    const wrong = wrongWord(kind, fields);
    if (wrong && this.#options.strict) throw new TypeError(wrong.text);
    if (wrong) this.#sayWrong(wrong.text, wrong.word);
    this.#report(kind, fields);
  }

  #report(kind, fields) {
    try {
      const event = {};  // each as JSON
      for (const [key, value] of Object.entries(fields ?? {})) {
        if (value === undefined || value === null) continue;
        if (key === 'args' || key === 'data' || key === 'text') {
          Object.assign(event, content(key, value, kind === 'tool_call' ? 'args_hash' : 'result_hash'));
        } else {
          event[key] = toJson(names.has(key) ? name(value) : value);
        }
      }
      this.#push(kind, event, fields?.phase);
    } catch (error) {
      this.#complain(`a report was lost: ${printed(error)}`);
    }
  }

  // How it ends. The first end counts.

  completed() { this.end('completed'); }
  failed(error, reason) { this.end('failed', { error, reason }); }
  incomplete(reason) { this.end('incomplete', { reason }); }

  end(outcome, { reason, error } = {}) {
    if (this.#ended) return;
    this.#leave();
    if (this.#isShared((other) => other.running)) {
      if (outcome !== 'completed') {
        const text = [outcome, reason, error].filter((part) => part != null).map(printed).join(' ');
        this.#report('message', { name: 'watchdog', text: `another reporter of this session reports no more: ${text}` });
      }
      this.#ended = true;
      return clearInterval(this.#interval);
    }
    if (this.#counted) this.#beat();
    const subject = outcome === 'cancelled' && reason === undefined ? this.cancel?.by : undefined;
    this.#report('end', { outcome, reason, subject, error: error == null ? undefined : oneError(error).slice(0, 2000) });
    this.#ended = true;
    clearInterval(this.#interval);
  }

  /** Whether another reporter of this process, or of the one that started it, has the session open. */
  #isShared(counts = () => true) {
    const others = [...ofParents, ...[...open.keys()].filter((facts) => facts !== this.#facts)];
    return others.some((other) => other.session === this.session && other.server === this.#door.server && counts(other) && (!other.process || isAlive(other.process)));
  }

  #leave() {
    if (open.delete(this.#facts)) tellChildren();
  }

  async run(work) {
    let result;
    if (this.#facts) this.#facts.running = true;
    tellChildren();
    const forget = beforeSignal((signal) => {
      this.end('cancelled', { reason: signal });
      return this.#close(lastWordMax, true);
    });
    try {
      result = await within({ reporter: this }, () => work(this));
      this.end(this.cancelled ? 'cancelled' : 'completed');
    } catch (error) {
      if (this.cancelled || error instanceof Cancelled) this.end('cancelled');
      else if (error?.name === 'AbortError') this.end('cancelled', { reason: 'aborted' });
      else this.failed(error);
      await this.#leaveAll();
      throw error;
    } finally {
      forget();
    }
    await this.#leaveAll();
    this.#throwMistake();
    return result;
  }

  /** For `await using`. It does not learn whether the block threw. */
  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    this.end(this.cancelled ? 'cancelled' : 'incomplete');
    await this.#leaveAll();
  }

  // Being asked to stop.

  get cancelled() { return this.cancel !== null; }
  get signal() { return this.#cancelled.signal; }

  // Waiting until all reports are sent.

  async flush(ms = Infinity) {
    await this.#deliver(ms);
    this.#throwMistake();
    return this.#isDelivered();
  }

  async close(ms) {
    await this.#close(ms ?? Infinity, ms === undefined);
    this.#throwMistake();
    return this.#isDelivered();
  }

  /** At an exit. */
  #leaveAll() {
    const { exit } = this.#options;
    return this.#close(exit ?? exitMax, exit === undefined);
  }

  async #close(ms, givesUp) {
    await this.#deliver(ms, givesUp);
    this.#closed = true;
    this.#leave();
    clearInterval(this.#interval);
    clearTimeout(this.#timer);
    this.#leaving.abort();
    this.#wake();
    if (unsent.delete(this)) this.#sayUnsent();
  }

  /** `givesUp`: soon, if no monitor was there from the start. All exits of the process together wait for it `absentMax`. */
  async #deliver(ms, givesUp = false) {
    if (!this.#door.server) return;
    const begun = performance.now();
    const exit = exitOf(this.#door.server);
    await this.#ready;
    this.#rouse(0);
    while (!this.#isDelivered() && !this.#closed) {
      const passed = performance.now() - begun;
      const soon = this.#absent ? exit.left : exit.vain && ms !== Infinity ? absentMax : Infinity;
      if (passed >= ms || givesUp && !this.#acknowledged && passed >= soon) {
        if (givesUp && this.#absent) exit.left = Math.max(0, exit.left - passed);
        exit.vain ||= givesUp;
        return;
      }
      this.#timer?.ref?.();  // The timer keeps the process alive while a caller waits.
      let timer;
      const delivered = new Promise((done) => { this.#waiting.push(done); });
      const late = new Promise((done) => { if (ms !== Infinity || givesUp) timer = setTimeout(done, Math.min(ms - passed, givesUp ? 50 : timerMax)); });
      await Promise.race([delivered, late]);
      clearTimeout(timer);
    }
  }

  /** How many reports no monitor has acknowledged yet. */
  get undelivered() { return this.#queue.length + this.#flight.length; }

  #sayUnsent() {
    const count = this.undelivered;
    if (count > 0) this.#log(`${count} ${count === 1 ? 'report was' : 'reports were'} not delivered${this.#trouble && `: ${this.#trouble}`}`);
  }

  // The queue.

  #pending(kind, event, phase, at = Date.now()) {
    const id = `${this.#prefix}${(this.#ids++).toString(16).padStart(8, '0')}`;
    const whole = { event_id: `"${id}"`, ts_ms: `${at}`, ...event, kind: toJson(kind) };
    const text = Object.entries(whole).map(([key, value]) => `${JSON.stringify(key)}:${value}`);
    return { rank: ranks[kind] ?? restRank, text: `{${text.join(',')}}`, phase };
  }

  #push(kind, event, phase) {
    if (!this.#door.server || this.#closed) return;
    try {
      const item = this.#pending(kind, event, phase);
      const last = this.#queue.at(-1);
      if (item.rank === beatRank && this.#queue.length > coalesceMin && last.rank === beatRank && last.phase === phase) {
        this.#chars -= this.#queue.pop().text.length;
      }
      this.#queue.push(item);
      this.#chars += item.text.length;
      if (!unsent.has(this)) unsent.set(this, { say: () => this.#sayUnsent(), hasEnded: () => this.#ended, close: () => this.#close(0) });
      if (this.#queue.length > this.#options.queueMax || this.#chars > queueCharsMax) this.#shed();
      this.#rouse(item.rank === beatRank ? heartbeatLinger : 0);
    } catch (error) {  // An agent does not fail because of its watchdog.
      this.#complain(`a report was lost: ${printed(error)}`);
    }
  }

  /** Makes room: heartbeats first, then what is no change, then the oldest changes. Ends stay. */
  #shed() {
    const before = this.#queue.length;
    for (const rank of [beatRank, restRank, changeRank]) {
      let count = this.#queue.length;
      this.#queue = this.#queue.filter((item) => {
        const goes = item.rank === rank && (count > this.#options.queueMax * 0.75 || this.#chars > queueCharsMax * 0.75);
        if (goes) {
          --count;
          this.#chars -= item.text.length;
        }
        return !goes;
      });
    }
    this.dropped += before - this.#queue.length;
  }

  /** A heartbeat if one is due, else a question whether somebody wants the agent to stop. */
  #tick(every) {
    if (this.#ended || this.#closed) return;
    const now = performance.now();
    if (now - this.#beaten >= this.#options.interval - every / 2) this.#beat();
    else if (this.#made && !this.#pumping && this.#isDelivered() && now - this.#asked >= every / 2) this.#look();
  }

  async #look() {
    try {
      this.#asked = performance.now();
      const answer = await this.#door.ask('POST', `${sessions}/${this.session}/events`, { body: '[]', signal: this.#leaving.signal, limit: pollMax });
      this.#obey(answer?.directive ?? {});
    } catch { /* The next report says what is wrong. */ }
  }

  #beat() {
    this.#counted = false;
    this.#beaten = performance.now();
    this.#heartbeat(undefined, undefined, { counters: { ...this.#totals }, source: 'sidecar' });
  }

  #isDelivered() {
    return this.#queue.length === 0 && this.#flight.length === 0 && !this.#counted;
  }

  #wake() {
    for (const done of this.#waiting.splice(0)) done();
  }

  // The sender. Its timers keep no process alive; a request under way does.

  #rouse(linger) {
    const due = Date.now() + linger;
    if (!this.#door.server || this.#closed || this.#pumping || due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#pump(), linger);
    if (linger > 0) this.#timer.unref?.();
  }

  async #pump() {
    this.#pumping = true;
    this.#due = Infinity;
    await this.#ready;
    let pause = 0;
    while (pause === 0 && !this.#closed && this.#claim()) pause = await this.#send();
    this.#pumping = false;
    if (this.#isDelivered()) {
      unsent.delete(this);
      return this.#wake();
    }
    if (pause === 0) return this.#rouse(countLinger);
    if (this.#ended) giveUpOldest();
    const again = Math.max(pause, jittered(Math.min(retryMax, retryMin * 2 ** Math.min(++this.#failures, 8))));
    if (this.#closed) return;
    this.#due = 0;  // Nobody asks for it earlier.
    this.#timer = setTimeout(() => this.#pump(), again);
    if (this.#waiting.length === 0) this.#timer.unref?.();
    if (this.#absent) this.#wake();
  }

  /** Whether there is something to send. What is under way stays as it is until it is acknowledged. */
  #claim() {
    const lost = this.dropped - this.#reportedDropped;
    if (lost > 0 && this.#flight.length === 0) {
      this.#reportedDropped = this.dropped;
      this.#report('message', { name: 'watchdog', text: `${lost} reports were dropped: the monitor did not take them in time` });
    }
    if (this.#counted && !this.#ended) this.#beat();
    this.#counted = false;
    let [chars, count] = [0, 0];
    while (count < this.#queue.length && this.#flight.length + count < this.#batch) {
      const next = this.#queue[count].text.length;
      if (count > 0 && chars + next > batchCharsMax) break;
      chars += next;
      ++count;
    }
    this.#chars -= chars;
    this.#flight.push(...this.#queue.splice(0, count));
    return this.#flight.length > 0;
  }

  /** 0 if something was settled, else at least how many milliseconds to wait. */
  async #send() {
    try {
      if (!this.#made) await this.#make();
      const part = this.#flight.slice(0, this.#batch);
      const body = `[${part.map((item) => item.text).join(',')}]`;
      const answer = await this.#door.ask('POST', `${sessions}/${this.session}/events`, { body, signal: this.#leaving.signal });
      this.#flight.splice(0, part.length);
      this.#batch = Math.min(batchMax, this.#batch * 2);
      this.#failures = 0;
      this.#complained = '';
      this.#trouble = '';
      this.#acknowledged = true;
      exits.delete(this.#door.server);
      this.#asked = performance.now();
      this.#obey(answer?.directive ?? {});
      if (answer?.hint) this.#foundWrong(`the monitor hints: ${answer.hint}`);
      return 0;
    } catch (error) {
      if ([400, 413, 422].includes(error.status)) return this.#reject(error);
      const verb = error.status ? 'refuses reports' : 'cannot be reached, reports wait';
      const why = error.cause?.message || error.cause?.code || error.message;
      this.#absent = isAbsent(error);
      if (!this.#closed) {
        this.#complain(`${this.#door.server} ${verb}: ${why}`);
        this.#trouble = `${this.#door.server} ${verb.split(',')[0]}: ${why}`;
      }
      const refused = error.status < 500 && ![408, 429].includes(error.status);
      return Math.max(error.retryAfter ?? 0, refused ? this.#options.refusedPause ?? refusedPause : 1);
    }
  }

  async #make() {
    if (Object.values(this.#spec).some((value) => value !== undefined)) {
      try {
        await this.#door.ask('POST', sessions, { body: toJson({ sessionId: this.session, ...this.#spec }), signal: this.#leaving.signal });
      } catch (error) {
        const bad = [400, 413, 422].includes(error.status) || error instanceof TypeError && /JSON|BigInt/.test(error.message);
        if (!bad && error.status !== 409) throw error;
        if (bad) this.#foundWrong(`the session has no properties: ${error.message}`);  // 409: made before, for example by a wrapper.
      }
    }
    this.#made = true;
  }

  /** One event of the batch is bad: finds out which, and goes on without it. */
  #reject(error) {
    const part = Math.min(this.#flight.length, this.#batch);
    const named = Number.isInteger(error.line) && error.line >= 1 && error.line <= part ? error.line : null;
    if (named === null && part > 1) {
      this.#batch = part >> 1;
      return 0;
    }
    this.#flight.splice((named ?? 1) - 1, 1);
    ++this.rejected;
    this.#foundWrong(`a report was not understood: ${error.message}`);
    return 0;
  }

  #obey(directive) {
    const known = new Set(this.aborts.map((abort) => JSON.stringify(abort)));
    this.aborts = directive.aborts ?? [];
    for (const abort of this.aborts) {
      if (known.has(JSON.stringify(abort))) continue;
      for (const [callId, { turnId, stop }] of this.#calls) {
        if (turnId === abort.turnId && (abort.toolId === null || abort.toolId === callId)) stop.abort(new Cancelled(abort));
      }
      this.#call(this.#options.onAbort, abort);
    }
    if (directive.cancel && !this.cancel) {
      this.cancel = directive.cancel;
      this.#cancelled.abort(new Cancelled(directive.cancel));
      this.#call(this.#options.onCancel, directive.cancel);
    }
  }

  async #call(callback, what) {
    try {
      await callback?.(what);
    } catch (error) {
      this.#complain(`a callback failed: ${printed(error)}`);
    }
  }

  /** The monitor found a mistake. */
  #foundWrong(what) {
    if (this.#options.strict) this.#mistake ??= what;
    else this.#sayWrong(what);
  }

  #throwMistake() {
    const mistake = this.#mistake;
    this.#mistake = null;
    if (mistake !== null) throw new TypeError(mistake);
  }

  /** Says it once in this process: also if the monitor says again what this client has said about a word. */
  #sayWrong(what, word = null) {
    if (said.has(what) || said.size >= saidMax) return;
    const isNamed = (known) => known && ['"', "'", '`'].some((quote) => what.includes(quote + known + quote));
    if (word === null && [...said.values()].some(isNamed)) return;
    said.set(what, word);
    this.#log(what);
  }

  /** Says it once, until things are well again. */
  #complain(what) {
    const kind = what.split(': ')[0];
    if (kind === this.#complained) return;
    this.#complained = kind;
    this.#log(what);
  }

  #log(what) {
    try {
      this.#options.log?.(`watchdog ${this.session}: ${what}`);
    } catch { /* nobody listens */ }
  }
}

/** The generator, as a call from its first step on. */
function observed(generator, start) {
  const yielded = [];
  let [count, moved, isOver, begun] = [0, 0, false, null];
  const see = (step) => {
    if (step.done) {
      const rest = count > yieldedMax ? { rest: opaque('not shown') } : {};
      if (!isOver) begun.ended({ yielded, count, ...(step.value === undefined ? {} : { returned: step.value }), ...rest });
      isOver = true;
      return step;
    }
    if (++count <= yieldedMax) yielded.push(step.value);
    if (performance.now() - moved < countLinger) return step;
    moved = performance.now();
    begun.call.progress(undefined, { value: count });
    return step;
  };
  const fail = (error) => {
    if (!isOver) begun.failed(error);
    isOver = true;
    throw error;
  };
  const to = (method) => (...values) => {
    begun ??= start();
    let step;
    try {
      step = within(begun.store, () => generator[method](...values));
    } catch (error) {
      return fail(error);
    }
    return step instanceof Promise ? step.then(see, fail) : see(step);
  };
  return Object.assign(Object.create(Object.getPrototypeOf(generator)), { next: to('next'), return: to('return'), throw: to('throw') });
}

const isGenerator = (value) => /Generator\]$/.test(Object.prototype.toString.call(value));

/** The function, with each call reported. Outside of any reporter it does what it did. */
export function wrap(work, { name: tool = work.name || 'function', args: shown, reporter: of, callId, turnId, deadlineMs } = {}) {
  const around = function (...args) {
    const reporter = of ?? Reporter.current();
    if (!reporter) return work.apply(this, args);
    const start = () => {
      const data = shown ? shown(...args) : args.length === 1 ? args[0] : args.length === 0 ? {} : args;
      const begun = reporter[beginCall](tool, data, { callId, turnId, deadlineMs });
      return { ...begun, store: { reporter, call: begun.call } };
    };
    if (isGenerator(work.prototype)) return observed(work.apply(this, args), start);
    const begun = start();
    const failed = (error) => {
      begun.failed(error);
      throw error;
    };
    let result;
    try {
      result = within(begun.store, () => work.apply(this, args));
    } catch (error) {
      return failed(error);
    }
    if (isGenerator(result)) return observed(result, () => begun);
    if (result instanceof Promise) {  // The caller gets the same one, which may have methods of its own.
      result.then(begun.ended, begun.failed).catch(() => {});  // A strict reporter throws the mistake at its next report.
      return result;
    }
    if (typeof result?.then === 'function') return Promise.resolve(result).then((value) => { begun.ended(value); return value; }, failed);
    begun.ended(result);
    return result;
  };
  return Object.defineProperties(around, { name: { value: work.name, configurable: true }, length: { value: work.length, configurable: true } });
}

// --- Waiting ----------------------------------------------------------------------------------------------------------

const goals = /^(completed|failed|incomplete|cancelled|end|state-change(=.+)?|health=(unknown|starting|progressing|slow|suspect|stuck|looping|blocked|silent|dead|idle))$/s;

export class WaitFailed extends Error {
  constructor(end, why, text, progress) {
    super(text);
    this.name = 'WaitFailed';
    Object.assign(this, { end, why, progress });
  }
}

export class Monitor {
  #door;

  constructor({ server, token, fetch } = {}) {
    this.#door = new Door(server, token, fetch);
  }

  ask(method, path, body) {
    return this.#door.ask(method, path, { body: body === undefined ? undefined : toJson(body) });
  }

  progress(session) {
    return this.ask('GET', `/api/autonomous/progress/${session}`);
  }

  async *events(session, { kind = '', after = 0 } = {}) {
    while (after !== null) {
      const page = await this.ask('GET', `${sessions}/${session}/events?after=${after}&limit=1000&kind=${kind}`);
      yield* page.events;
      after = page.next;
    }
  }

  cancel(session, { reason, by } = {}) {
    return this.ask('POST', `${sessions}/${session}/cancel`, { reason, by });
  }

  async wait(session, wanted = 'completed', options = {}) {
    return new Wait(this.#door, session, wanted, options).run();
  }
}

export function wait(session, wanted, { server, token, fetch, ...options } = {}) {
  return new Monitor({ server, token, fetch }).wait(session, wanted, options);
}

/** By a function of the caller: nothing that another try would help with. */
class Raised {
  constructor(error) { this.error = error; }
}

/** Asks the monitor again and again whether the wait is over; the monitor answers late, and its cursor keeps the state. */
class Wait {
  #progress = null;
  #query;
  #gone = new AbortController();  // aborted when its process or the waiting caller is gone

  constructor(door, session, wanted, { onStuck = 'fail', furtherMax = 3, after = 0, child, signal, seen, interrupted = (text) => console.error(text) }) {
    if (!/^[A-Za-z0-9._:@-]{1,128}$/.test(session)) throw new TypeError(`'${session}' is not a session id: 1 to 128 characters of A-Z a-z 0-9 . _ : @ -`);
    const condition = typeof wanted === 'function' ? wanted : null;
    if (!condition && !goals.test(wanted)) {
      throw new TypeError(`nobody can wait for '${wanted}': it is completed, failed, incomplete, cancelled, end, health=NAME, state-change, ` +
                          'state-change=TYPE or a function of the progress document');
    }
    if (typeof onStuck !== 'function' && !['fail', 'keep'].includes(onStuck)) throw new TypeError(`onStuck is fail, keep or a function, not '${onStuck}'`);
    if (!door.server) throw new TypeError('no monitor to ask: $WATCHDOG_SERVER is empty');
    Object.assign(this, { door, session, condition, onStuck, child, signal, seen, interrupted });
    this.expected = condition ? condition.name || 'a condition' : wanted;
    this.#query = { for: condition ? 'condition' : wanted, onStuck: typeof onStuck === 'function' ? 'ask' : onStuck, furtherMax, after,
                    tell: seen || condition ? 'changes' : 'over', timeoutMs: 0 };
  }

  async run() {
    const release = this.#listen();
    try {
      for (let failures = 0, reached = false; ;) {
        const last = this.#gone.signal.aborted;
        let refusal = null;
        try {
          if (await this.#look(last)) return this.#progress;
          reached = true;
          failures = 0;
          if (this.#query.tell === 'changes') await this.#pause(50);  // Frequent changes cost no more answers than this.
          continue;
        } catch (error) {
          if (error instanceof WaitFailed) throw error;
          if (error instanceof Raised) throw error.error;
          refusal = error;
          if ([400, 401, 403, 404, 422].includes(error.status) || (error.status && !reached && ![429, 503].includes(error.status))) {
            const hint = error.status === 404 ? '. It is older than this client, which needs watchdog-monitor 0.2.0 or newer' : '';
            throw this.#failure('refused', `the monitor at ${this.door.server} refuses the wait: ${error.message}${hint}`);
          }
          const passes = error.status || error === silence || this.#gone.signal.aborted || /^(ECONNRESET|EPIPE|UND_ERR_)/.test(error.cause?.code);
          if (!reached && !passes) {
            throw this.#failure('unavailable', `no monitor answers at ${this.door.server} (${error.cause?.message ?? error.message}): start one with ` +
                                               '`watchdog-monitor serve`, or name it by $WATCHDOG_SERVER');
          }
        }
        if (last) throw this.#goneFailure();
        if (this.#gone.signal.aborted) continue;
        await this.#pause(Math.max(refusal.retryAfter ?? 0, jittered(Math.min(2000, 50 * 2 ** Math.min(++failures, 6)))));
      }
    } finally {
      release();
    }
  }

  #pause(ms) {
    return new Promise((done) => {
      const over = () => {
        clearTimeout(timer);
        this.#gone.signal.removeEventListener('abort', over);
        done();
      };
      const timer = setTimeout(over, ms);
      this.#gone.signal.addEventListener('abort', over);
    });
  }

  /** To what ends the wait from outside: the agent's process, the caller, an outer limit on this process. */
  #listen() {
    const gone = () => this.#gone.abort();
    const forget = beforeSignal(async (signal) => {
      const answer = await this.#ask(true, lastWordMax).catch(() => null);
      this.interrupted(this.#failure('interrupted', `this process was asked to end (${signal})`, answer).message);
    });
    if (this.signal?.aborted || (this.child && (this.child.exitCode !== null || this.child.signalCode !== null))) gone();
    const unstarted = (error) => { this.unstarted = error; gone(); };
    this.child?.once('exit', gone);
    this.child?.once('error', unstarted);
    this.signal?.addEventListener('abort', gone, { once: true });
    return () => {
      this.child?.off('exit', gone);
      this.child?.off('error', unstarted);
      this.signal?.removeEventListener('abort', gone);
      forget();
      gone();
    };
  }

  /** `last`: how it is now, with what happened. */
  async #ask(last, limit = quietMax) {
    const query = new URLSearchParams(last ? { ...this.#query, tell: 'now' } : this.#query);
    const answer = await this.door.ask('GET', `${sessions}/${this.session}/wait?${query}`, { signal: last ? undefined : this.#gone.signal, limit });
    if (answer?.sessionId !== this.session) throw new MonitorError(502, 'the answer is not from a watchdog-monitor');
    return answer;
  }

  /** True if the session is as it is waited for; throws once it will not be. */
  async #look(last) {
    const answer = await this.#ask(last);
    const { cursor, progress, came, end, why } = answer;
    this.#query.cursor = cursor;
    delete this.#query.timeoutMs;  // The first answer is at once.
    this.#progress = progress ?? this.#progress;
    if (progress && this.seen) await this.#call(this.seen, progress);
    if (came || (this.condition && progress && await this.#call(this.condition, progress))) return true;
    if (end === 'stuck' && typeof this.onStuck === 'function') {
      if (!await this.#call(this.onStuck, progress)) throw this.#failure('user_cancelled_stuck', `${why}; the person who was asked chose not to continue`, answer);
    } else if (end) {
      throw this.#failure(end, why, answer);
    }
    if (last) throw this.#goneFailure(answer);
    return false;
  }

  async #call(callback, ...values) {
    try {
      return await callback(...values);
    } catch (error) {
      throw new Raised(error);
    }
  }

  #goneFailure(answer) {
    if (this.signal?.aborted) return this.#failure('interrupted', `the wait was called off: ${this.signal.reason?.message ?? this.signal.reason}`, answer);
    const { exitCode, signalCode } = this.child;
    const how = this.unstarted ? `could not be started (${this.unstarted.message})` : signalCode ? `was ended by ${signalCode}` : `exited with ${exitCode}`;
    if (!this.#progress) return this.#failure('no_session', `its process ${how} without having reported anything`, answer);
    return this.#failure('dead', `its process ${how}, and the session has not ended`, answer);
  }

  /** The error of a failed wait, with what happened: the first and the last of it. */
  #failure(end, why, answer) {
    const last = answer?.last ?? (this.#progress ? `${this.#progress.lifecycle}, ${this.#progress.health}` : 'there was no such session');
    const lines = [`session ${this.session}: ${why}`, `  expected  ${this.expected}`, `  last      ${last}`, `  ended as  ${end}`];
    if (answer?.timeline) {
      const { first, last: newest, omitted, heartbeats } = answer.timeline;
      const delivered = [...first, ...newest].map(({ at, text }) => `${((at - first[0].at) / 1000).toFixed(3).padStart(10)} s  ${text}`);
      lines.push(`  timeline  ${delivered.length + omitted} entries, ${heartbeats} heartbeats besides`);
      if (omitted > 0) delivered.splice(first.length, 0, `         …  ${omitted} omitted`);
      lines.push(...delivered);
    }
    return new WaitFailed(end, why, lines.join('\n'), this.#progress);
  }
}
