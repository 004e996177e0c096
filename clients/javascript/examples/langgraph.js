// A graph of LangGraph.js with tools. The callbacks fit any graph.
// OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=none node langgraph.js "What is in here?"

import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Reporter } from 'watchdog-client';
import { watchdogCallbacks } from 'watchdog-client/langchain';
import { schemaOf, tools } from './tools.js';

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
                                          { callbacks: [watchdogCallbacks(watchdog)], signal: watchdog.signal });
  watchdog.stateChange('answered', messages.at(-1).content);
  console.log(messages.at(-1).content);
});
