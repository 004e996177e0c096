import type { ChildProcess, SpawnOptions } from 'node:child_process';
import type { Awaited, Monitor, Progress, Reporter, ReporterOptions, StoredEvent, WaitOptions } from './watchdog.js';

/** A session for one test. */
export class TestSession {
  /** `signal` ends its waits. */
  constructor(name: string, signal?: AbortSignal);
  readonly session: string;
  readonly monitor: Monitor;
  /** The environment of a process that reports to this session. */
  readonly environment: Record<string, string>;
  /** Starts the agent. A wait fails if the agent exits without ending its session. */
  start(command: string, args?: string[], options?: SpawnOptions): ChildProcess;
  reporter(options?: ReporterOptions): Reporter;
  wait(wanted?: Awaited, options?: WaitOptions): Promise<Progress>;
  progress(): Promise<Progress>;
  events(kind?: string): Promise<StoredEvent[]>;
  /** Ends the processes that it started. */
  close(): Promise<void>;
}

/** For `test.extend`: `watchdog` is a session for this test. */
export const fixtures: {
  watchdog: (context: { task: { name: string }; signal: AbortSignal }, use: (session: TestSession) => Promise<void>) => Promise<void>;
};

/** For `expect.extend`, on a session's id or on the fixture. */
export const matchers: {
  toComplete(received: string | TestSession, options?: WaitOptions): Promise<{ pass: boolean; message: () => string }>;
  toBecome(received: string | TestSession, wanted: Awaited, options?: WaitOptions): Promise<{ pass: boolean; message: () => string }>;
};
