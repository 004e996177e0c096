import type { ChildProcess, SpawnOptions } from 'node:child_process';
import type { Awaited, Monitor, Progress, Reporter, ReporterOptions, StoredEvent, WaitOptions } from './watchdog.js';

/** A session for one test. */
export class TestSession {
  /** `signal` ends its waits. `where` is the monitor; default: that of the environment. */
  constructor(name: string, signal?: AbortSignal, where?: { server?: string; token?: string });
  /** Milliseconds after which a wait says on standard error that nobody reports to its session, and how often. Default: 5000. */
  static sayAfter: number;
  readonly session: string;
  readonly monitor: Monitor;
  /** The environment of a process that reports to this session. */
  readonly environment: Record<string, string>;
  /**
   * Starts the agent as the leader of a process group, if `detached` is not false. A wait fails if the agent exits without ending
   * its session.
   */
  start(command: string, args?: readonly string[], options?: SpawnOptions): ChildProcess;
  reporter(options?: ReporterOptions): Reporter;
  wait(wanted?: Awaited, options?: WaitOptions): Promise<Progress>;
  progress(): Promise<Progress>;
  events(kind?: string): Promise<StoredEvent[]>;
  /** Ends the process groups that it started: SIGTERM, and SIGKILL after two seconds. */
  close(): Promise<void>;
}

/**
 * For `test.extend`: `watchdog` is a session for this test. Where $WATCHDOG_SERVER is not set, the worker starts a monitor of its
 * own: the program `watchdog-monitor`, or what $WATCHDOG_PROGRAM names. Without a monitor one test fails, and the others are skipped.
 */
export const fixtures: {
  watchdog: (context: { task: { name: string }; signal: AbortSignal; skip: (note?: string) => never },
             use: (session: TestSession) => Promise<void>) => Promise<void>;
};

/** For `expect.extend`, on a session's id or on the fixture. */
export const matchers: {
  toComplete(received: string | TestSession, options?: WaitOptions): Promise<{ pass: boolean; message: () => string }>;
  toBecome(received: string | TestSession, wanted: Awaited, options?: WaitOptions): Promise<{ pass: boolean; message: () => string }>;
};

/** For `globalSetup` in vitest's configuration: one monitor for the whole run, if $WATCHDOG_SERVER is not set. Returns what ends it. */
export function setup(): Promise<(() => void) | undefined>;

/** Starts a monitor on a free port, with a database that is removed when the monitor or this process ends. */
export function startMonitor(): Promise<{ server: string; token: string; end: () => void }>;

interface WatchdogMatchers<R> {
  /** Waits until the session completes, however long that takes. */
  toComplete(options?: WaitOptions): Promise<R>;
  /** Waits until the session is as wanted. */
  toBecome(wanted: Awaited, options?: WaitOptions): Promise<R>;
}

declare module 'vitest' {
  interface Assertion<T = any> extends WatchdogMatchers<void> {}
}
