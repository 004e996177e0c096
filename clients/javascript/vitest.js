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

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Monitor, Reporter, WaitFailed } from './watchdog.js';

/** A session for one test. */
export class TestSession {
  monitor = new Monitor();
  #children = [];
  #reporters = [];
  #waits = [];
  #over = new AbortController();

  constructor(name, signal) {
    this.session = `${name.replace(/[^A-Za-z0-9._:@-]+/g, '-').slice(-100)}-${Math.random().toString(16).slice(2, 10)}`;
    signal?.addEventListener('abort', () => this.#over.abort(signal.reason), { once: true });
  }

  /** Of a process that reports to this session. */
  get environment() {
    return { ...process.env, WATCHDOG_SESSION: this.session };
  }

  start(command, args = [], { env, ...options } = {}) {
    const child = spawn(command, args, { stdio: 'inherit', ...options, env: { ...this.environment, ...env } });
    child.on('error', () => {});  // The wait reports it.
    this.#children.push(child);
    return child;
  }

  reporter(options) {
    const reporter = new Reporter(this.session, options);
    this.#reporters.push(reporter);
    return reporter;
  }

  wait(wanted, options = {}) {
    const waiting = this.monitor.wait(this.session, wanted, { child: this.#children.at(-1), signal: this.#over.signal, ...options });
    // No test shows the error of a wait that an outer limit ended, or that nobody awaited.
    this.#waits.push(waiting.catch((error) => { if (error.end === 'interrupted') console.error(error.message); }));
    return waiting;
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
    for (const child of this.#children) {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    for (const reporter of this.#reporters) await reporter.close(2000);
  }
}

export const fixtures = {
  watchdog: async ({ task, signal }, use) => {
    const session = new TestSession(task.name, signal);
    await use(session);
    await session.close();
  },
};

async function toBecome(received, wanted, options) {
  if (this.isNot) throw new TypeError('that something never happens cannot be waited for');
  try {
    await (typeof received === 'string' ? new Monitor().wait(received, wanted, options) : received.wait(wanted, options));
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
