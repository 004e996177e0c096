// An agent's loop around the stream of the `openai` package.
// OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=none node openai.js "What is in here?"

import OpenAI from 'openai';
import { Reporter } from 'watchdog-client';
import { schemaOf, tools } from './tools.js';

const task = process.argv[2] ?? 'What is in here?';
const model = new OpenAI({ timeout: 2 ** 31 - 1 });  // ms; by default it gives up a model after ten minutes
const definitions = Object.entries(tools).map(([name, tool]) => (
  { type: 'function', function: { name, description: tool.description, parameters: schemaOf(tool) } }));

const watchdog = new Reporter(undefined, { agent: 'openai-loop', task });

await watchdog.run(async () => {
  const messages = [{ role: 'user', content: task }];
  for (let step = 1; ; ++step) {
    watchdog.heartbeat(step, 'reflection');
    const stream = model.chat.completions.stream({ model: 'local', messages, tools: definitions }, { signal: watchdog.signal });
    stream.on('chunk', () => watchdog.count({ tokens: 1 }));
    const answer = await stream.finalMessage();
    messages.push(answer);
    if (!answer.tool_calls?.length) {
      watchdog.stateChange('answered', answer.content);
      return console.log(answer.content);
    }
    watchdog.heartbeat(step, 'action');
    for (const { id, function: { name, arguments: text } } of answer.tool_calls) {
      const input = JSON.parse(text);
      const result = await watchdog.tool(name, input, ({ signal }) => tools[name].act(input, signal), { callId: id })
        .catch((error) => { watchdog.signal.throwIfAborted(); return `${error}`; });  // The model receives the error.
      messages.push({ role: 'tool', tool_call_id: id, content: result });
    }
  }
});
