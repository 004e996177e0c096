// Environment: $WATCHDOG_SERVER (default http://127.0.0.1:3000; empty: report nothing), $WATCHDOG_SESSION, $WATCHDOG_TOKEN.
// In a browser they are options, and the page must come from the monitor's own address, which answers no other.

export interface Asked { by: string; reason: string; at: number }
export interface Abort extends Asked { turnId: string; toolId: string | null }

/** schemas/progress.schema.json. */
export interface Progress {
  sessionId: string; alive: boolean; stuck: boolean;
  progress: { heartbeats: number; stateChanges: number; lastChange: string | null; lastChangeAgo: number | null };
  currentPhase: string | null; iteration: number | null;
  lifecycle: 'running' | 'waiting' | 'idle' | Outcome; health: Health; healthSince: number; reason: string;
  outcome: { kind: Outcome; reason: string; at: number; error: string | null } | null;
  waitingFor: string | null; agent: string | null; task: string | null; labels: Record<string, string>;
  cancel: Asked | null; lastSeq: number;
  [more: string]: unknown;
}
export type Outcome = 'completed' | 'failed' | 'incomplete' | 'cancelled';
export type Health = 'unknown' | 'starting' | 'progressing' | 'slow' | 'suspect' | 'stuck' | 'looping' | 'blocked' | 'silent' | 'dead';
/** One event as the monitor keeps it: schemas/stored_event.schema.json. */
export interface StoredEvent { seq: number; at_ms: number; kind: string; [more: string]: any }

export interface ReporterOptions {
  agent?: string;
  task?: string;
  labels?: Record<string, string>;
  /** The session that started this one. */
  parent?: string;
  /** schemas/policy.schema.json. */
  policy?: object;
  /** How much of arguments, results and data the monitor keeps. */
  content?: 'none' | 'digest' | 'preview' | 'full';
  server?: string;
  token?: string;
  /**
   * Milliseconds. How often the process says by itself that it lives, and hears of a cancel while the agent is silent; 0: never.
   * Default: the policy's heartbeatInterval, else 10,000.
   */
  interval?: number;
  /** Milliseconds. How long `run` may wait at its end until all is told; Infinity: as long as it takes. */
  exit?: number;
  /** Reports that may wait. Beyond that heartbeats go first, the end never. */
  queueMax?: number;
  onCancel?: (cancel: Asked) => void;
  /** A turn or a call is to stop. Calls made with `tool` have a signal of their own. */
  onAbort?: (abort: Abort) => void;
  /** Gets a sentence when reports cannot be delivered; null: nobody does. Default: console.warn. */
  log?: ((text: string) => void) | null;
}

export interface ToolCall {
  callId: string;
  /** Aborted when somebody wants the session, the turn or this call to stop. */
  signal: AbortSignal;
  /** The call got further; its deadline counts anew. */
  progress(text?: string, how?: { value?: number; total?: number }): void;
}

/**
 * Reports one session, beside its agent: no method waits for the monitor (but `flush`, `close` and the end of `run`) or throws.
 * What was not acknowledged is sent again with the same event_id, so nothing counts twice. Its timers keep no process alive.
 */
export class Reporter {
  constructor(session?: string, options?: ReporterOptions);
  readonly session: string;
  /** Once somebody asked the agent to stop. */
  readonly cancel: Asked | null;
  readonly cancelled: boolean;
  /** Likewise; its reason is a `Cancelled`. */
  readonly signal: AbortSignal;
  /** Turns and calls that are to stop, and have not. */
  readonly aborts: Abort[];
  /** Reports that were given up because the queue was full. */
  readonly dropped: number;
  /** Reports that the monitor did not understand. */
  readonly rejected: number;

  /** One pass of the agent's loop. `counters` are running totals (tokens, bytes, items) within an operation. */
  heartbeat(iteration?: number, phase?: string,
            more?: { counters?: Record<string, number>; source?: 'loop' | 'sidecar'; expectQuietMs?: number }): void;
  /** The agent got somewhere. What is new about it belongs into `content`: the same again is no progress. */
  stateChange(name: string, content?: unknown): void;
  /** Adds to running totals (`count({ tokens: 1 })`), told once a second: the current operation works. */
  count(more: Record<string, number>): void;
  /** A call of a tool around `work`; what that throws is its error, and goes on. */
  tool<T>(name: string, args: unknown, work: (call: ToolCall) => T | Promise<T>,
          more?: { callId?: string; turnId?: string; deadlineMs?: number }): Promise<T>;
  toolCall(name: string, args?: unknown, callId?: string, more?: { turnId?: string; deadlineMs?: number }): void;
  toolResult(name: string, result?: unknown, callId?: string): void;
  toolError(name: string, error: unknown, callId?: string): void;
  message(role: string, text: string): void;
  /** It waits on purpose: for input, approval, quota, dependency, human, backend, … */
  waitFor(what: string, text?: string): void;
  /** Any event of schemas/event.schema.json: turn, budget, user_input, idle, retry, opinion, … */
  report(kind: string, fields?: Record<string, unknown>): void;

  /** The first end counts. */
  completed(): void;
  failed(error?: unknown, reason?: string): void;
  incomplete(reason: string): void;
  end(outcome: Outcome, more?: { reason?: string; error?: unknown }): void;
  /** The agent as a whole: ends completed, failed with what it throws, or cancelled if somebody asked for that. */
  run<T>(work: (reporter: Reporter) => T | Promise<T>): Promise<T>;

  /** Until the monitor has acknowledged all; false if that took more milliseconds than the caller wants. */
  flush(ms?: number): Promise<boolean>;
  /** As `flush`; then nothing is sent any more. Ends no session. */
  close(ms?: number): Promise<boolean>;
}

/** The reason of a signal: somebody asked for it. */
export class Cancelled extends Error {}

/** The monitor answered with an error. */
export class MonitorError extends Error { readonly status: number }

/** completed, failed, incomplete, cancelled, end, health=NAME, state-change, state-change=TYPE, or a function. */
export type Awaited =
  | Outcome | 'end' | `health=${Health}` | 'state-change' | `state-change=${string}`
  | ((progress: Progress) => boolean | Promise<boolean>);

export interface WaitOptions {
  /**
   * What becomes of it once the session has stayed stuck or looping: fail; keep (go on); or a function that says whether to
   * go on, asked again after as many further iterations.
   */
  onStuck?: 'fail' | 'keep' | ((progress: Progress) => boolean | Promise<boolean>);
  /** For how many further iterations. Default 3. */
  furtherMax?: number;
  /** Only state changes after this event count: `lastSeq` of a wait before. */
  after?: number;
  /** The process (of node:child_process) that is to report: once it is gone and has not ended the session, nothing will come. */
  child?: { exitCode: number | null; signalCode: string | null; once(name: string, act: (error: Error) => void): unknown; off(name: string, act: (error: Error) => void): unknown };
  /** Calls the wait off. */
  signal?: AbortSignal;
  /** Gets each new progress document. */
  seen?: (progress: Progress) => void;
}

/** What was waited for will not come. The message says what was expected, how the session was last, why, and what happened. */
export class WaitFailed extends Error {
  readonly end: 'ended' | 'dead' | 'stuck' | 'user_cancelled_stuck' | 'no_session' | 'interrupted' | 'unavailable' | 'refused';
  readonly why: string;
  readonly progress: Progress | null;
}

export class Monitor {
  constructor(where?: { server?: string; token?: string });
  /** Any request; throws MonitorError, or what fetch throws. */
  ask(method: string, path: string, body?: unknown): Promise<any>;
  progress(session: string): Promise<Progress>;
  /** What it reported, the oldest first. */
  events(session: string, which?: { kind?: string; after?: number }): AsyncGenerator<StoredEvent>;
  /** Asks its agent to stop; needs a token. */
  cancel(session: string, why?: { reason?: string; by?: string }): Promise<unknown>;
  /**
   * Waits until the session is as asked for (default: completed), and gives its progress document then. Throws WaitFailed as
   * soon as it is clear that it will not be: it ended otherwise, is dead, or stayed stuck; and TypeError where it could
   * never be. Time alone ends nothing. A monitor that restarts is waited for, and a session that is not there yet. A function
   * is asked at once, with each change, and else once a second while something is reported.
   */
  wait(session: string, wanted?: Awaited, options?: WaitOptions): Promise<Progress>;
}

/** `Monitor.wait` at the monitor of the environment. */
export function wait(session: string, wanted?: Awaited, options?: WaitOptions & { server?: string; token?: string }): Promise<Progress>;
