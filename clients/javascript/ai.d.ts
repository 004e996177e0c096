import type { Reporter } from './watchdog.js';

/** Reports steps, tool calls, results and errors to the reporter, or to the current one. */
export function watchdogTelemetry(reporter?: Reporter): {
  onStepStart(event: { readonly stepNumber: number }): void;
  onToolExecutionStart(event: { readonly toolCall: { readonly toolName: string; readonly toolCallId: string; readonly input: unknown } }): void;
  onToolExecutionEnd(event: {
    readonly toolCall: { readonly toolName: string; readonly toolCallId: string };
    readonly toolOutput: { readonly type: string; readonly output?: unknown; readonly error?: unknown };
  }): void;
};
