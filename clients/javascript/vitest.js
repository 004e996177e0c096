// A fixture and two matchers for vitest: a test's agent reports to a session of its own, and the test waits without sleeping.
//
//   import { expect, test as base } from 'vitest';
//   import { fixtures, matchers } from 'watchdog-client/vitest';
//   expect.extend(matchers);
//   const test = base.extend(fixtures);
//
//   test('the agent finishes', async ({ watchdog }) => {
//     watchdog.start(process.execPath, ['agent.js']);      // its environment names the session; ended with the test
//     await expect(watchdog).toComplete();                 // however long it takes
//   }, Infinity);                                          // vitest's own limit would end it after 5 s
//
// `toBecome` takes the goals of `wait`: 'health=blocked', 'state-change=planned', a function of the progress document.
// The message of a failed test shows the expectation, the session's last state, the cause, and a timeline.
//
// Where $WATCHDOG_SERVER is not set, each worker of vitest has a monitor of its own. With this line in vitest.config.js the
// whole run has one:   test: { globalSetup: ['watchdog-client/vitest'] }

import { spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Monitor, MonitorError, Reporter, WaitFailed, beforeSignal } from './watchdog.js';

const isPosix = process.platform !== 'win32';
const farewell = 2000;  // ms from SIGTERM to SIGKILL

// vitest loads this module for each file of tests.
const common = globalThis[Symbol.for('watchdog-client/vitest')] ??= (() => {
  const made = { monitor: null, hasFailed: false, groups: new Set(), guard: null, terminal: 2 };
  // Standard error of a worker is a pipe to vitest, which leaves first at a signal.
  try {
    if (process.connected) made.terminal = openSync(`/proc/${process.ppid}/fd/2`, 'a');
  } catch { /* no /proc, or a socket */ }
  process.once('exit', () => { for (const group of made.groups) group.send('SIGKILL'); });
  // vitest is gone, so nobody ends its worker.
  if (process.env.VITEST && process.connected) process.once('disconnect', () => globalThis[Symbol.for('watchdog-client')].signalled('SIGTERM'));
  return made;
})();

/** Past vitest, which shows what it captured when the test is over. */
function say(text) {
  try {
    writeSync(common.terminal, `${text}\n`);
  } catch { /* nobody reads it */ }
}

// --- A monitor for the tests ------------------------------------------------------------------------------------------

function find(program) {
  const names = isPosix ? [program] : [program, `${program}.exe`];
  const folders = /[/\\]/.test(program) ? [''] : (process.env.PATH ?? '').split(delimiter);
  return folders.flatMap((folder) => names.map((one) => join(folder, one))).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

// The shell ends the monitor when its standard input ends: when this process is gone, in whatever way.
const guard = '"$0" serve --config "" --no-checks --db "$1/watchdog.db" --port 0 & monitor=$!; cat >/dev/null; kill "$monitor"; wait "$monitor"; rm -rf "$1"';

/** Starts a monitor on a free port, with a database that is removed with it. */
export async function startMonitor() {
  const wanted = process.env.WATCHDOG_PROGRAM ?? 'watchdog-monitor';
  const program = find(wanted);
  if (!program) throw new Error(`no monitor: $WATCHDOG_SERVER names none, and there is no program ${wanted}. Install watchdog-monitor, or name it by $WATCHDOG_PROGRAM`);
  const folder = mkdtempSync(join(tmpdir(), 'watchdog-tests-'));
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(WATCHDOG|OPENAI)_/.test(key)));
  const options = { env, stdio: ['pipe', 'pipe', 'ignore'], detached: isPosix };
  const child = isPosix ? spawn('/bin/sh', ['-c', guard, program, folder], options)
    : spawn(program, ['serve', '--config', '', '--no-checks', '--db', join(folder, 'watchdog.db'), '--port', '0'], options);
  child.on('error', () => {});
  let server;
  for await (const line of createInterface({ input: child.stdout })) {
    server = line.match(/^listening on (\S+)/)?.[1] ?? server;
    if (server && line.startsWith('open ')) break;
  }
  if (!server) throw new Error(`no monitor: ${program} does not start`);
  const end = () => {
    if (isPosix) return child.stdin.destroy();
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', end);
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) pipe.unref();
  child.stdout.resume();
  return { server, token: readFileSync(join(folder, 'watchdog.db-token'), 'utf8').trim().split(/\s/).at(-1), end };
}

/** For `globalSetup` of vitest: one monitor for the whole run. */
export async function setup() {
  if (process.env.WATCHDOG_SERVER !== undefined) return undefined;
  const { server, token, end } = await startMonitor();
  Object.assign(process.env, { WATCHDOG_SERVER: server, WATCHDOG_TEST_TOKEN: token });
  return () => {
    delete process.env.WATCHDOG_SERVER;
    delete process.env.WATCHDOG_TEST_TOKEN;
    end();
  };
}

/** Where the tests of this worker report to. */
async function findMonitor() {
  const server = process.env.WATCHDOG_SERVER;
  if (server === undefined) {
    const { server: own, token } = await startMonitor();
    process.env.WATCHDOG_SERVER = own;  // for reporters of the tests, and for their agents
    return { server: own, token };
  }
  const token = process.env.WATCHDOG_TEST_TOKEN ?? process.env.WATCHDOG_TOKEN;
  if (server) {
    await new Monitor({ server, token }).ask('GET', '/healthz').catch((error) => {
      if (error instanceof MonitorError) return;
      throw new Error(`no monitor: none answers at ${server} (${error.cause?.message ?? error.message}), as $WATCHDOG_SERVER names it`);
    });
  }
  return { server, token };
}

// --- Sessions ---------------------------------------------------------------------------------------------------------

// The shell ends the groups whose worker is gone without having ended them: killed, or a thread of a vitest that a signal ended.
const undertaker = `groups=
while read -r verb group; do
  kept=
  for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done
  groups=$kept
  [ "$verb" = add ] && groups="$groups $group"
done
for one in $groups; do kill -TERM "-$one"; done 2>/dev/null
[ "$groups" ] && sleep 1
for one in $groups; do kill -KILL "-$one"; done 2>/dev/null`;

function guardGroup(verb, pid) {
  if (!common.guard) {
    common.guard = spawn('/bin/sh', ['-c', undertaker], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    common.guard.on('error', () => {});
    common.guard.stdin.on('error', () => {});
    common.guard.unref();
    common.guard.stdin.unref();
  }
  common.guard.stdin.write(`${verb} ${pid}\n`);
}

/** A process with all that it started. */
class Group {
  constructor(child, isLeader) {
    Object.assign(this, { child, isLeader });
    common.groups.add(this);
    if (isLeader && child.pid !== undefined) guardGroup('add', child.pid);
  }

  send(signal) {
    const { pid, exitCode, signalCode } = this.child;
    if (pid === undefined) return false;
    if (!this.isLeader) return exitCode === null && signalCode === null && this.child.kill(signal);
    try {
      return process.kill(-pid, signal);
    } catch {
      return false;
    }
  }

  /** Lets the agent say where it was before it is killed. */
  async end() {
    const isGone = async (ms) => {
      for (const begun = performance.now(); performance.now() - begun < ms; await sleep(20)) if (!this.send(0)) return true;
      return false;
    };
    if (this.send('SIGTERM') && !await isGone(farewell) && this.send('SIGKILL')) await isGone(farewell);
    common.groups.delete(this);
    if (this.isLeader && this.child.pid !== undefined) guardGroup('gone', this.child.pid);
  }

  endNow() {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    if (this.send('SIGTERM')) Atomics.wait(pause, 0, 0, farewell / 4);
    this.send('SIGKILL');
  }
}

/** A session for one test. */
export class TestSession {
  /** Milliseconds after which a wait says that nobody reports to its session. */
  static sayAfter = 5000;

  monitor;
  #children = [];
  #groups = [];
  #reporters = [];
  #waits = [];
  #over = new AbortController();
  #forget;

  constructor(name, signal, where) {
    this.session = `${name.replace(/[^A-Za-z0-9._:@-]+/g, '-').slice(-100)}-${Math.random().toString(16).slice(2, 10)}`;
    this.monitor = new Monitor(where);
    signal?.addEventListener('abort', () => this.#over.abort(signal.reason), { once: true });
    // Last, and without a pause: vitest may be gone, and a test that goes on without it never ends.
    this.#forget = beforeSignal(() => () => { for (const group of this.#groups) group.endNow(); });
  }

  /** Of a process that reports to this session. */
  get environment() {
    return { ...process.env, WATCHDOG_SESSION: this.session };
  }

  start(command, args = [], { env, ...options } = {}) {
    const isLeader = isPosix && options.detached !== false;
    const child = spawn(command, args, { stdio: 'inherit', ...options, detached: isLeader, env: { ...this.environment, ...env } });
    child.on('error', () => {});  // The wait reports it.
    this.#children.push(child);
    this.#groups.push(new Group(child, isLeader));
    return child;
  }

  reporter(options) {
    const reporter = new Reporter(this.session, options);
    this.#reporters.push(reporter);
    return reporter;
  }

  wait(wanted, options = {}) {
    const waiting = this.monitor.wait(this.session, wanted, { child: this.#children.at(-1), signal: this.#over.signal, interrupted: say, ...options });
    const silent = setInterval(() => this.#sayIfSilent(), TestSession.sayAfter);
    silent.unref();
    this.#waits.push(waiting.catch((error) => {
      // No test shows the error of a wait that an outer limit ended, or that nobody awaited.
      if (error.end === 'interrupted') console.error(error.message);
    }).finally(() => clearInterval(silent)));
    return waiting;
  }

  async #sayIfSilent() {
    const isSilent = await this.progress().then(() => false, ({ status }) => status === 404);
    if (!isSilent || this.#over.signal.aborted) return;
    const who = this.#children.length + this.#reporters.length > 0 ? '' : ' This test started no agent and made no reporter.';
    say(`watchdog: still waiting for ${this.session}: nobody reports; agents must see WATCHDOG_SESSION and WATCHDOG_SERVER.${who}`);
  }

  progress() {
    return this.monitor.progress(this.session);
  }

  async events(kind) {
    const events = [];
    for await (const event of this.monitor.events(this.session, { kind })) events.push(event);
    return events;
  }

  async close() {
    this.#over.abort(new Error('the test is over'));
    await Promise.all(this.#waits);
    await Promise.all(this.#groups.map((group) => group.end()));
    for (const reporter of this.#reporters) await reporter.close(2000);
    this.#forget();
  }
}

export const fixtures = {
  watchdog: async ({ task, signal, skip }, use) => {
    common.monitor ??= findMonitor();
    let where;
    try {
      where = await common.monitor;
    } catch (error) {  // One failure says it all.
      if (common.hasFailed) return skip(error.message);
      common.hasFailed = true;
      throw error;
    }
    const session = new TestSession(task.name, signal, where);
    await use(session);
    await session.close();
  },
};

async function toBecome(received, wanted, options) {
  if (this.isNot) throw new TypeError('that something never happens cannot be waited for');
  try {
    await (typeof received === 'string' ? new Monitor().wait(received, wanted, { interrupted: say, ...options }) : received.wait(wanted, options));
  } catch (error) {
    if (!(error instanceof WaitFailed)) throw error;
    return { pass: false, message: () => error.message };
  }
  return { pass: true, message: () => '' };
}

/** On a session's id, or what the fixture gives. */
export const matchers = {
  toBecome,
  toComplete(received, options) {
    return toBecome.call(this, received, 'completed', options);
  },
};
