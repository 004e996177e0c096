import type { Reporter } from './watchdog.js';

/** Reports nodes of graphs, tokens, tool calls, results and errors to the reporter, or to the current one. */
export function watchdogCallbacks(reporter?: Reporter): Record<`handle${string}`, (...args: any[]) => void>;
