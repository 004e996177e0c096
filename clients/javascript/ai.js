// For the package `ai` (Vercel) from version 7 on: registerTelemetry(watchdogTelemetry()), or telemetry: { integrations: […] } of a call.

import { Reporter } from './watchdog.js';

/** Reports steps, tool calls, results and errors to the reporter, or to the current one. */
export function watchdogTelemetry(reporter) {
  const of = () => reporter ?? Reporter.current();
  return {
    onStepStart: ({ stepNumber }) => of()?.heartbeat(stepNumber + 1, 'step'),
    onToolExecutionStart: ({ toolCall: { toolName, toolCallId, input } }) => of()?.toolCall(toolName, input, toolCallId),
    onToolExecutionEnd: ({ toolCall: { toolName, toolCallId }, toolOutput }) => {
      if (toolOutput.type === 'tool-error') of()?.toolError(toolName, toolOutput.error, toolCallId);
      else of()?.toolResult(toolName, toolOutput.output, toolCallId);
    },
  };
}
