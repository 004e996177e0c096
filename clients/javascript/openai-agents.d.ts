import type { Reporter } from './watchdog.js';

/** Reports agents, handoffs, tool calls and results of a runner to the reporter, or to the current one. Returns the runner. */
export function watch<R extends { on(type: any, listener: any): unknown }>(runner: R, reporter?: Reporter): R;
