// Each integration with the real package of its framework and a model that the test plays. The lines are those of the documentation.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Monitor as Client, Reporter } from 'watchdog-client';
import { Monitor } from './monitor.mjs';

delete process.env.WATCHDOG_SESSION;
process.env.OPENAI_AGENTS_DISABLE_TRACING = '1';
process.env.MASTRA_TELEMETRY_DISABLED = '1';
const page = readFileSync(new URL('programs.md', import.meta.url), 'utf8');
let monitor;
let client;
before(async () => {
  monitor = await Monitor.start();
  process.env.WATCHDOG_SERVER = monitor.url;
  client = new Client({ server: monitor.url, token: monitor.token });
});
after(() => monitor.end());

/** Runs the example of a part of the page, with these names. Returns [kind, name, content] of what is stored. */
async function example(title, names) {
  const part = page.split(`### ${title}\n`)[1].split('\n### ')[0].split('\n## ')[0];
  let lines = part.match(/```js\n([^]*?)```/)[1];
  for (const [, what, module] of lines.matchAll(/^import \{ (.*) \} from '(.*)';\n/gm)) {
    const found = await import(module);
    for (const one of what.split(', ')) names[one] ??= found[one];
  }
  lines = lines.replaceAll(/^import .*\n/gm, '');
  const session = `example-${title.replaceAll(/\W+/g, '-')}`;
  process.env.WATCHDOG_SESSION = session;
  const run = new (async () => {}).constructor(...Object.keys(names), lines);
  await run(...Object.values(names));
  delete process.env.WATCHDOG_SESSION;
  const events = [];
  for await (const event of client.events(session)) events.push(event);
  assert.equal(events.at(-1).outcome, 'completed', JSON.stringify(events));
  return events.filter(({ kind, source }) => /^(tool_call|tool_result|error)$/.test(kind) || source === 'loop')
    .map(({ kind, name, args, text, phase, call_id: id }) => (kind === 'heartbeat' ? [kind, phase] : [kind, name, kind === 'tool_call' ? args : text, id]));
}

const without = (events) => events.map((event) => event.slice(0, 3));
const pairs = (events) => {
  const ids = events.filter(([kind]) => kind !== 'heartbeat').map(([, , , id]) => id);
  assert.equal(new Set(ids).size, ids.length / 2, ids);
};

describe('integrations', { timeout: 120_000 }, () => {
  test('ai', async () => {
    const { jsonSchema, tool } = await import('ai');
    const { MockLanguageModelV4 } = await import('ai/test');
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const call = (toolName) => ({ content: [{ type: 'tool-call', toolCallId: toolName, toolName, input: '{"path":"x"}' }], finishReason: { unified: 'tool-calls' }, usage, warnings: [] });
    const answers = [call('read'), call('fail'), { content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop' }, usage, warnings: [] }];
    const model = new MockLanguageModelV4({ doGenerate: async () => answers.shift() });
    const inputSchema = jsonSchema({ type: 'object', properties: { path: { type: 'string' } } });
    const tools = { read: tool({ inputSchema, execute: () => ({ words: 7 }) }), fail: tool({ inputSchema, execute: () => { throw new Error('no'); } }) };
    const found = await example('The package ai', { model, tools, prompt: 'x' });
    assert.deepEqual(without(found), [['heartbeat', 'step'], ['tool_call', 'read', { path: 'x' }], ['tool_result', 'read', '{"words":7}'],
                                      ['heartbeat', 'step'], ['tool_call', 'fail', { path: 'x' }], ['error', 'fail', 'Error: no'], ['heartbeat', 'step']]);
    pairs(found);
  });

  test('LangGraph.js', async () => {
    const { tool } = await import('@langchain/core/tools');
    const { END, MessagesAnnotation, START, StateGraph } = await import('@langchain/langgraph');
    const read = tool(({ path }) => `words of ${path}`, { name: 'read', description: 'reads', schema: { type: 'object', properties: { path: { type: 'string' } } } });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('work', async () => ({ messages: [{ role: 'assistant', content: await read.invoke({ path: 'x' }) }] }))
      .addEdge(START, 'work').addEdge('work', END).compile();
    const found = await example('LangChain.js and LangGraph.js', { graph, input: { messages: [{ role: 'user', content: 'x' }] } });
    assert.deepEqual(without(found).filter(([, phase]) => phase !== '__start__'),
                     [['heartbeat', 'work'], ['tool_call', 'read', { path: 'x' }], ['tool_result', 'read', 'words of x']]);
    pairs(found);
  });

  test('OpenAI Agents SDK', async () => {
    const { Agent, Usage, tool } = await import('@openai/agents-core');
    const read = tool({ name: 'read', description: 'reads', strict: false, parameters: { type: 'object', properties: {}, required: [], additionalProperties: true },
                        execute: ({ path }) => `words of ${path}` });
    const answers = [[{ type: 'function_call', id: 'f1', callId: 'c1', name: 'read', status: 'completed', arguments: '{"path":"x"}' }],
                     [{ type: 'message', id: 'm1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done' }] }]];
    const model = { getResponse: async () => ({ usage: new Usage(), output: answers.shift() }) };
    const agent = new Agent({ name: 'reader', model, tools: [read] });
    const { Runner } = await import('@openai/agents-core');
    const found = await example('OpenAI Agents SDK', { Runner, agent, input: 'x' });
    assert.deepEqual(found, [['heartbeat', 'reader'], ['tool_call', 'read', { path: 'x' }, 'c1'], ['tool_result', 'read', 'words of x', 'c1']]);
  });

  test('Mastra', async () => {
    const { Agent } = await import('@mastra/core/agent');
    const { Mastra } = await import('@mastra/core');
    const { createTool } = await import('@mastra/core/tools');
    const { z } = await import('zod');
    const { MockLanguageModelV3 } = await import('ai/test');
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const answers = [{ content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'read', input: '{"path":"x"}' }], finishReason: { unified: 'tool-calls' }, usage, warnings: [] },
                     { content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop' }, usage, warnings: [] }];
    const model = new MockLanguageModelV3({ doGenerate: async () => answers.shift() });
    const read = createTool({ id: 'read', description: 'reads', inputSchema: z.object({ path: z.string() }), execute: async ({ path }) => `words of ${path}` });
    const agent = new Agent({ id: 'reader', name: 'reader', instructions: 'read', model, tools: { read } });
    const found = await example('Mastra', { Mastra, agent, input: 'x' });
    assert.deepEqual(without(found), [['heartbeat', 'model'], ['tool_call', 'read', { path: 'x' }], ['tool_result', 'read', 'words of x'], ['heartbeat', 'model']]);
    pairs(found);
  });

  test('OpenTelemetry', async () => {
    let running;
    const work = async (tracer) => {
      for (const [kind, names] of [['gen_ai.operation.name', ['chat', 'execute_tool']], ['openinference.span.kind', ['LLM', 'TOOL']], ['traceloop.span.kind', ['llm', 'tool']]]) {
        tracer.startSpan('asks', { attributes: { [kind]: names[0] } }).end();
        const input = JSON.stringify({ kind });
        const span = tracer.startSpan('read', { attributes: { [kind]: names[1], 'gen_ai.tool.call.arguments': input, 'input.value': input } });
        await Reporter.current().flush();
        running ??= (await client.progress(Reporter.current().session)).tools.map(({ name }) => name);
        span.setAttributes({ 'gen_ai.tool.call.result': `words of ${kind}`, 'output.value': `words of ${kind}` });
        span.end();
      }
      const late = tracer.startSpan('late');
      late.setAttributes({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'write' }).setStatus({ code: 2, message: 'no' });
      late.end();
    };
    const found = await example('OpenTelemetry', { work });
    assert.deepEqual(running, ['read']);  // while it runs
    assert.deepEqual(without(found), [
      ...['gen_ai.operation.name', 'openinference.span.kind', 'traceloop.span.kind'].flatMap((kind) => [
        ['heartbeat', 'model'], ['tool_call', 'read', { kind }], ['tool_result', 'read', `words of ${kind}`]]),
      ['tool_call', 'write', undefined], ['error', 'write', 'no']]);
    pairs(found);
  });
});
