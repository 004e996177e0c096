// A graph of LangGraph.js with tools. The adapter is one handler of callbacks, so it fits any graph.
// OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=none node langgraph.js "What is in here?"

import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Reporter } from 'watchdog-client';
import { schemaOf, tools } from './tools.js';

/** Tells what a graph does: its nodes are phases, its supersteps iterations. */
class WatchdogCallbacks extends BaseCallbackHandler {
  name = 'watchdog';
  #tools = new Map();

  constructor(watchdog) {
    super();
    this.watchdog = watchdog;
  }

  handleChainStart(chain, inputs, runId, parent, tags, metadata, type, name) {
    if (metadata?.langgraph_node === name) this.watchdog.heartbeat(metadata.langgraph_step, name);
  }

  handleLLMNewToken() {
    this.watchdog.count({ tokens: 1 });
  }

  handleToolStart(chain, input, runId, parent, tags, metadata, name) {
    this.#tools.set(runId, name);
    this.watchdog.toolCall(name, input, runId);
  }

  handleToolEnd(output, runId) {
    this.watchdog.toolResult(this.#name(runId), output?.content ?? output, runId);
  }

  handleToolError(error, runId) {
    this.watchdog.toolError(this.#name(runId), error, runId);
  }

  #name(runId) {
    const name = this.#tools.get(runId);
    this.#tools.delete(runId);
    return name;
  }
}

const task = process.argv[2] ?? 'What is in here?';
const set = Object.entries(tools).map(([name, one]) => tool((input, { signal } = {}) => one.act(input, signal),
                                                            { name, description: one.description, schema: schemaOf(one) }));
const model = new ChatOpenAI({ model: 'local', timeout: 2 ** 31 - 1 }).bindTools(set);
const graph = new StateGraph(MessagesAnnotation)
  .addNode('reflection', async ({ messages }) => {
    let answer;
    for await (const piece of await model.stream(messages)) answer = answer?.concat(piece) ?? piece;
    return { messages: [answer] };
  })
  .addNode('tools', new ToolNode(set))
  .addEdge(START, 'reflection')
  .addConditionalEdges('reflection', toolsCondition, ['tools', END])
  .addEdge('tools', 'reflection')
  .compile();

const watchdog = new Reporter(undefined, { agent: 'langgraph', task });

await watchdog.run(async () => {
  const { messages } = await graph.invoke({ messages: [{ role: 'user', content: task }] },
                                          { callbacks: [new WatchdogCallbacks(watchdog)], signal: watchdog.signal });
  watchdog.stateChange('answered', messages.at(-1).content);
  console.log(messages.at(-1).content);
});
