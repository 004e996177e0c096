// An agent of the `ai` package (Vercel): streamText with tools.
// OPENAI_BASE_URL=http://127.0.0.1:8080/v1 node ai-sdk.js "What is in here?"

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { Reporter } from 'watchdog-client';
import { schemaOf, tools } from './tools.js';

/** Options of streamText that report its steps and pieces, and obey a cancel. */
function watched(watchdog) {
  return {
    abortSignal: watchdog.signal,
    prepareStep: ({ stepNumber }) => { watchdog.heartbeat(stepNumber + 1, 'reflection'); },
    onChunk: ({ chunk }) => { if (/delta/.test(chunk.type)) watchdog.count({ tokens: 1 }); },
    onError: () => {},  // Thrown by what is awaited below.
  };
}

/** The same tools, each call reported. */
function watchedTools(set, watchdog) {
  return Object.fromEntries(Object.entries(set).map(([name, one]) => [name, {
    ...one,
    execute: (input, { toolCallId, ...more }) =>
      watchdog.tool(name, input, ({ signal }) => one.execute(input, { toolCallId, ...more, abortSignal: signal }), { callId: toolCallId }),
  }]));
}

const task = process.argv[2] ?? 'What is in here?';
const provider = createOpenAICompatible({ name: 'local', baseURL: process.env.OPENAI_BASE_URL });
const set = Object.fromEntries(Object.entries(tools).map(([name, one]) => [name, tool({
  description: one.description,
  inputSchema: jsonSchema(schemaOf(one)),
  execute: (input, { abortSignal }) => one.act(input, abortSignal),
})]));

const watchdog = new Reporter(undefined, { agent: 'ai-sdk', task });

await watchdog.run(async () => {
  const result = streamText({
    model: provider('local'), prompt: task, tools: watchedTools(set, watchdog), stopWhen: stepCountIs(25), ...watched(watchdog),
  });
  const text = await result.text;
  watchdog.signal.throwIfAborted();
  watchdog.stateChange('answered', text);
  console.log(text);
  // `stopWhen` cut it off while it still wanted to call tools.
  if (await result.finishReason === 'tool-calls') watchdog.incomplete('max_iterations_reached');
});
