// For LangChain.js and LangGraph.js: graph.invoke(input, { callbacks: [watchdogCallbacks()] }).

import { Reporter } from './watchdog.js';

function data(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reports nodes of graphs, tokens, tool calls, results and errors to the reporter, or to the current one. */
export function watchdogCallbacks(reporter) {
  const of = () => reporter ?? Reporter.current();
  const names = new Map();  // of running calls
  const ended = (runId) => {
    const name = names.get(runId);
    names.delete(runId);
    return name;
  };
  return {
    handleChainStart: (chain, inputs, runId, parent, tags, metadata, type, name) => {
      if (metadata?.langgraph_node !== undefined && metadata.langgraph_node === name) of()?.heartbeat(metadata.langgraph_step, name);
    },
    handleLLMNewToken: () => of()?.count({ tokens: 1 }),
    handleToolStart: (tool, input, runId, parent, tags, metadata, name) => {
      names.set(runId, name ?? tool.name ?? tool.id?.at(-1) ?? 'tool');
      of()?.toolCall(names.get(runId), data(input), runId);
    },
    handleToolEnd: (output, runId) => of()?.toolResult(ended(runId), output?.content ?? output, runId),
    handleToolError: (error, runId) => of()?.toolError(ended(runId), error, runId),
  };
}
