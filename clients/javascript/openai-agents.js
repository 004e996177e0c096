// For @openai/agents: await watch(new Runner()).run(agent, input).

import { Reporter } from './watchdog.js';

function data(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reports agents, handoffs, tool calls and results of a runner to the reporter, or to the current one. Returns the runner. */
export function watch(runner, reporter) {
  const of = () => reporter ?? Reporter.current();
  let turns = 0;
  runner.on('agent_start', (context, agent) => of()?.heartbeat(++turns, agent.name));
  runner.on('agent_handoff', (context, from, to) => of()?.stateChange('handoff', { from: from.name, to: to.name }));
  runner.on('agent_tool_start', (context, agent, tool, { toolCall }) => of()?.toolCall(tool.name, data(toolCall.arguments), toolCall.callId));
  runner.on('agent_tool_end', (context, agent, tool, result, { toolCall }) => of()?.toolResult(tool.name, result, toolCall.callId));
  return runner;
}
