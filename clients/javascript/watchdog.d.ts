/// <reference lib="esnext.disposable" />
// Environment: $WATCHDOG_SERVER (default http://127.0.0.1:3000; empty: report nothing), $WATCHDOG_SESSION, $WATCHDOG_TOKEN.
// In a browser give them as options. The page must come from the monitor's own address: it answers no other origin.

export interface Asked { by: string; reason: string; at: number }
export interface Abort extends Asked { turnId: string; toolId: string | null }

/** schemas/progress.schema.json. */
export interface Progress {
  sessionId: string; title: string; shortId: string; directory: string | null; alive: boolean; stuck: boolean;
  progress: { heartbeats: number; stateChanges: number; lastChange: string | null; lastChangeAgo: number | null };
  currentPhase: string | null; iteration: number | null;
  state: string; attention: 'needs_you' | 'ready' | 'watch' | 'working' | 'resting'; stateSince: number; lastMessage: string | null;
  lifecycle: 'running' | 'waiting' | 'idle' | Outcome; health: Health; healthSince: number; reason: string;
  wastedCalls: number | null; unfinished: string | null;
  outcome: { kind: Outcome; reason: string; subject: string | null; at: number; error: string | null } | null;
  waitingFor: string | null; waitUntil: number | null; agent: string | null; task: string | null; labels: Record<string, string>;
  cancel: Asked | null; lastSeq: number;
  sources: { source: string; reports: number; firstAt: number; lastAt: number }[];
  [more: string]: unknown;
}
export type Outcome = 'completed' | 'failed' | 'incomplete' | 'cancelled';
export type Health = 'unknown' | 'starting' | 'progressing' | 'slow' | 'suspect' | 'stuck' | 'looping' | 'blocked' | 'silent' | 'dead' | 'idle';
// --- Words of schemas/event.schema.json, written by scripts/docs --generate
export type EventKind =
  | 'start' | 'heartbeat' | 'state_change' | 'tool_call' | 'tool_result' | 'error' | 'message' | 'wait'
  | 'idle' | 'user_input' | 'compaction' | 'opinion' | 'chant' | 'retry' | 'budget' | 'limit' | 'turn'
  | 'tool_progress' | 'tool_timeout' | 'evidence' | 'resume' | 'end';
// --- end of the words
/** One event as the monitor stores it: `stored` in schemas/event.schema.json. */
export interface StoredEvent { seq: number; at_ms: number; kind: string; [more: string]: any }

export interface ReporterOptions {
  agent?: string;
  task?: string;
  /** Its name for people; without one the first line of the task, else of its first prompt. */
  title?: string;
  labels?: Record<string, string>;
  /** The session that started this one. */
  parent?: string;
  /** schemas/policy.schema.json. */
  policy?: object;
  /** How much of arguments, results and data the monitor stores. */
  content?: 'none' | 'digest' | 'preview' | 'full';
  server?: string;
  token?: string;
  /** Milliseconds between two sidecar heartbeats; 0: none. Default: the policy's heartbeatInterval, else 10,000. */
  interval?: number;
  /**
   * Milliseconds between two questions whether somebody asked this agent to stop. The client asks them while the agent is silent.
   * Default: 2000. With 0 only the answers to reports and heartbeats say it. Without heartbeats the client asks nothing.
   */
  poll?: number;
  /** The function that sends requests. Default: `fetch` as it was when this module was imported. */
  fetch?: typeof fetch;
  /**
   * Milliseconds that `run` may wait at its end until all reports are sent; Infinity: no limit. Default: 2000, but 200 for
   * all exits of the process together if no monitor was there from the start.
   */
  exit?: number;
  /** Size of the queue. When it is full, heartbeats are dropped first, the end never. */
  queueMax?: number;
  onCancel?: (cancel: Asked) => void;
  /** Called when a turn or a call must stop. Calls made with `tool` have a signal of their own. */
  onAbort?: (abort: Abort) => void;
  /**
   * For tests: a wrong report is a TypeError. A call with an unknown kind of event or field throws it. A mistake that the monitor
   * finds is thrown by the next report, `flush`, `close` or the end of `run`. Without `strict` mistakes are logged once.
   */
  strict?: boolean;
  /** Gets a sentence when reports cannot be delivered, or are wrong; null: no log. Default: console.warn. */
  log?: ((text: string) => void) | null;
}

export interface ToolCall {
  callId: string;
  /** Aborted when somebody asks the session, the turn or this call to stop, or when its deadline passed without progress. */
  signal: AbortSignal;
  /** Reports that the call made progress. Its deadline starts again. */
  progress(text?: string, how?: { value?: number; total?: number }): void;
}

/**
 * Reports one session. Only `flush`, `close` and the end of `run` wait for the monitor; no method throws, if the reporter is not `strict`.
 * Without a name the session is $WATCHDOG_SESSION. If a reporter of this process, or of the one that started it, has that open
 * already, this one reports to a child session. The child has a name of its own. `run` keeps its session from being ended by another reporter of the same name.
 * Unacknowledged reports are sent again with the same event_id, so nothing counts twice. Its timers keep no process alive.
 * It logs how many reports were not delivered when it is closed or the process exits. `process.exit()` sends nothing: `await close()` before.
 */
export class Reporter {
  constructor(session?: string, options?: ReporterOptions);
  readonly session: string;
  /** Set after somebody asked the agent to stop. */
  readonly cancel: Asked | null;
  readonly cancelled: boolean;
  /** Aborted after somebody asked the agent to stop; its reason is a `Cancelled`. */
  readonly signal: AbortSignal;
  /** Turns and calls that must stop and have not stopped. */
  readonly aborts: Abort[];
  /** Number of reports lost because the queue was full. */
  readonly dropped: number;
  /** Number of reports that the monitor refused. */
  readonly rejected: number;
  /** Number of reports that the monitor has not acknowledged yet. */
  readonly undelivered: number;

  /** The reporter whose `run`, `tool` or wrapped function calls this. Elsewhere the only open reporter, if it is not in `run`. */
  static current(): Reporter | undefined;
  /** The call of the `tool` or the wrapped function that calls this. */
  static currentCall(): ToolCall | undefined;

  /** Reports one iteration of the agent's loop. `counters` are running totals (tokens, bytes, items) within an operation. */
  heartbeat(iteration?: number, phase?: string,
            more?: { counters?: Record<string, number>; source?: 'loop' | 'sidecar'; expectQuietMs?: number }): void;
  /** Reports progress. Put what is new into `content`: the same content again is not progress. */
  stateChange(name: string, content?: unknown): void;
  /** Adds to running totals (`count({ tokens: 1 })`), sent once a second. They show that the current operation works. */
  count(more: Record<string, number>): void;
  /**
   * Reports a tool call around `work`. An exception of `work` is reported as the error of the call, and thrown again.
   * `deadlineMs`: milliseconds that it may last without `progress`. After them its `signal` is aborted, and the session's page says so.
   */
  tool<T>(name: string, args: unknown, work: (call: ToolCall) => T | Promise<T>,
          more?: { callId?: string; turnId?: string; deadlineMs?: number }): Promise<T>;
  /** Returns the same function. Each of its calls is reported: see `wrap`. */
  wrap<F extends (...args: any[]) => unknown>(work: F, how?: WrapOptions<F>): F;
  toolCall(name: string, args?: unknown, callId?: string, more?: { turnId?: string; deadlineMs?: number }): void;
  toolResult(name: string, result?: unknown, callId?: string): void;
  toolError(name: string, error: unknown, callId?: string): void;
  message(role: string, text: string): void;
  /** Reports that the agent waits on purpose: for input, approval, quota, backend, … */
  /** `until`: its end, if it is known; a number is in milliseconds since 1970. */
  waitFor(what: string, text?: string, until?: Date | number): void;
  /** Reports any event of schemas/event.schema.json: turn, budget, user_input, idle, retry, opinion, … */
  report(kind: EventKind | (string & {}), fields?: Record<string, unknown>): void;

  /** The first end counts. */
  completed(): void;
  failed(error?: unknown, reason?: string): void;
  incomplete(reason: string): void;
  end(outcome: Outcome, more?: { reason?: string; error?: unknown }): void;
  /**
   * Runs the whole agent. The session ends completed, failed with the exception, or cancelled if somebody asked for that. An AbortError
   * is a cancel. SIGINT and SIGTERM end it as cancelled, if nobody else in the process listens to them.
   */
  run<T>(work: (reporter: Reporter) => T | Promise<T>): Promise<T>;

  /** Waits until the monitor has acknowledged all reports. False: that took more than `ms` milliseconds. */
  flush(ms?: number): Promise<boolean>;
  /** Like `flush`; then sends nothing more. Does not end the session. Without `ms` it gives up soon if no monitor was there from the start. */
  close(ms?: number): Promise<boolean>;
  /** For `await using`. A session that nobody has ended is incomplete, as the block may have thrown. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface WrapOptions<F extends (...args: any[]) => unknown> {
  /** Name of the tool. Default: that of the function. */
  name?: string;
  /** Returns what is reported as arguments. Default: the only argument, else the list of them. */
  args?: (...args: Parameters<F>) => unknown;
  turnId?: string;
  deadlineMs?: number;
}

/**
 * Returns the same function. Each of its calls is reported to `Reporter.current()`, with arguments and result; without a reporter
 * it does what it did. A generator is one call from its first step on, and its result shows the first values that it yields.
 */
export function wrap<F extends (...args: any[]) => unknown>(work: F, how?: WrapOptions<F> & { reporter?: Reporter }): F;

/** The reason of a signal that somebody caused. */
export class Cancelled extends Error {}

/** The monitor answered with an error. */
export class MonitorError extends Error { readonly status: number }

/** completed, failed, incomplete, cancelled, end, health=NAME, state-change, state-change=TYPE, or a function. */
export type Awaited =
  | Outcome | 'end' | `health=${Health}` | 'state-change' | `state-change=${string}`
  | ((progress: Progress) => boolean | Promise<boolean>);

export interface WaitOptions {
  /**
   * What to do when the session stays stuck or looping: fail, keep waiting, or call a function that says whether to
   * go on. It is called again after the same number of iterations.
   */
  onStuck?: 'fail' | 'keep' | ((progress: Progress) => boolean | Promise<boolean>);
  /** Number of further iterations before that. Default 3. */
  furtherMax?: number;
  /** Only state changes after this event count: `lastSeq` of an earlier wait. */
  after?: number;
  /** The process (of node:child_process) that reports. If it exits without ending the session, the wait fails. */
  child?: { exitCode: number | null; signalCode: string | null; once(name: string, act: (error: Error) => void): unknown; off(name: string, act: (error: Error) => void): unknown };
  /** Ends the wait. */
  signal?: AbortSignal;
  /** Gets the text of a wait that SIGINT or SIGTERM ends, if nobody else in the process listens to them. Default: console.error. */
  interrupted?: (text: string) => void;
  /** Gets each new progress document. */
  seen?: (progress: Progress) => void;
}

/** The session cannot become what was expected. The message says what was expected, how the session was last, why, and what happened. */
export class WaitFailed extends Error {
  readonly end: 'ended' | 'dead' | 'stuck' | 'user_cancelled_stuck' | 'no_session' | 'interrupted' | 'unavailable' | 'refused';
  readonly why: string;
  readonly progress: Progress | null;
}

export class Monitor {
  constructor(where?: { server?: string; token?: string; fetch?: typeof fetch });
  /** Sends any request. Throws MonitorError, or what fetch throws. */
  ask(method: string, path: string, body?: unknown): Promise<any>;
  progress(session: string): Promise<Progress>;
  /** The session's events, the oldest first. */
  events(session: string, which?: { kind?: string; after?: number }): AsyncGenerator<StoredEvent>;
  /** Asks the agent to stop. Needs a token. */
  cancel(session: string, why?: { reason?: string; by?: string }): Promise<unknown>;
  /**
   * Returns the session's progress document when the session reaches the wanted state (default: completed), however long
   * that takes. Throws WaitFailed as soon as it cannot reach that state: it ended otherwise, is dead, or stays stuck. Throws
   * TypeError if `wanted` is invalid. The call also waits for a monitor that restarts, and for a session that does not exist
   * yet. A function is called at once, with each change, and once a second while something is reported.
   */
  wait(session: string, wanted?: Awaited, options?: WaitOptions): Promise<Progress>;
}

/** Like `Monitor.wait`, with the monitor of the environment. */
export function wait(session: string, wanted?: Awaited, options?: WaitOptions & { server?: string; token?: string; fetch?: typeof fetch }): Promise<Progress>;
