// Real clients of model servers, as their documentation has them used. Each asks the same thing and tells what it got.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { tool as graphTool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText, tool } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { z } from 'zod';

const words = 'A slow answer is an answer.';
const call = 'CALL read_file {"path": "notes.txt"}';
const messages = [{ role: 'user', content: `SAY ${words}\n${call}` }];
const description = 'Reads a file';
const parameters = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const tools = [{ type: 'function', function: { name: 'read_file', description, parameters } }];

/** What each has to come back with. */
export const whole = { text: words, calls: [['read_file', { path: 'notes.txt' }]] };

const named = (calls) => calls.map(({ name, arguments: given }) => [name, typeof given === 'string' ? JSON.parse(given) : given]);
const openAi = (base, options) => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0, ...options });
const chatted = ({ choices: [{ message }] }) => ({ text: message.content, calls: named(message.tool_calls.map((made) => made.function)) });

export const openAiStream = async (base, options) =>
  chatted(await openAi(base, options).chat.completions.stream({ model: 'small', messages, tools }).finalChatCompletion());

export const openAiWhole = async (base, options) =>
  chatted(await openAi(base, options).chat.completions.create({ model: 'small', messages, tools }));

export async function openAiResponses(base) {
  const asked = { model: 'small', input: messages, tools: [{ type: 'function', name: 'read_file', description, parameters, strict: false }] };
  const { output } = await openAi(base).responses.stream(asked).finalResponse();
  const of = (type) => output.filter((item) => item.type === type);
  return { text: of('message').flatMap(({ content }) => content).map(({ text }) => text).join(''), calls: named(of('function_call')) };
}

const aiRequest = (base, more) => ({
  model: createOpenAICompatible({ name: 'local', baseURL: `${base}/v1` })('small'),
  messages,
  tools: { read_file: tool({ description, inputSchema: z.object({ path: z.string() }) }) },
  maxRetries: 0,
  ...more,
});
const aiCalls = (calls) => calls.map(({ toolName, input }) => [toolName, input]);

export async function aiStream(base, more) {
  let fail;
  const failure = new Promise((_, reject) => { fail = reject; });
  const { text, toolCalls } = streamText({ ...aiRequest(base, more), onError: ({ error }) => fail(error), onAbort: () => fail(new Error('aborted')) });
  const all = Promise.all([text, toolCalls]);
  all.catch(fail);  // has no effect after onError or onAbort
  const [said, calls] = await Promise.race([all, failure]);
  return { text: said, calls: aiCalls(calls) };
}

export async function aiWhole(base) {
  const { text, toolCalls } = await generateText(aiRequest(base));
  return { text, calls: aiCalls(toolCalls) };
}

export async function anthropicStream(base) {
  const { content } = await anthropic(base).messages.stream(anthropicRequest).finalMessage();
  return anthropicAnswer(content);
}
export async function anthropicWhole(base) {
  return anthropicAnswer((await anthropic(base).messages.create(anthropicRequest)).content);
}
const anthropic = (base) => new Anthropic({ baseURL: base, apiKey: 'none', maxRetries: 0 });
const anthropicRequest = { model: 'small', max_tokens: 1000, messages, tools: [{ name: 'read_file', description, input_schema: parameters }] };
const anthropicAnswer = (content) => ({
  text: content.flatMap(({ text }) => text ?? []).join(''),
  calls: content.filter(({ type }) => type === 'tool_use').map(({ name, input }) => [name, input]),
});

export async function ollamaStream(base, fetch) {
  const got = { text: '', calls: [] };
  for await (const { message } of await new Ollama({ host: base, fetch }).chat({ model: 'small', messages, tools, stream: true })) {
    got.text += message.content;
    got.calls.push(...named((message.tool_calls ?? []).map((made) => made.function)));
  }
  return got;
}
export async function ollamaWhole(base) {
  const { message } = await new Ollama({ host: base }).chat({ model: 'small', messages, tools });
  return { text: message.content, calls: named(message.tool_calls.map((made) => made.function)) };
}

/** A whole agent: what its tool says goes back to the model. */
export async function langGraph(base) {
  const calls = [];
  const read = graphTool(({ path }) => calls.push(['read_file', { path }]) && 'some words',
                         { name: 'read_file', description, schema: z.object({ path: z.string() }) });
  const llm = new ChatOpenAI({ model: 'small', apiKey: 'none', maxRetries: 0, configuration: { baseURL: `${base}/v1` } });
  const agent = createReactAgent({ llm, tools: [read] });
  let text;
  const asked = { messages: [{ role: 'user', content: `${call}\nTHEN\nSAY ${words}` }] };
  for await (const [mode, state] of await agent.stream(asked, { streamMode: ['messages', 'values'] })) {
    if (mode === 'values') text = state.messages.at(-1).content;
  }
  return { text, calls };
}

/** Gives up when no event came for so long, as LangChain's stream_chunk_timeout and Codex's stream_idle_timeout_ms do. */
export async function impatientWithEvents(base, ms) {
  const stopped = new AbortController();
  let idle;
  const wait = () => {
    clearTimeout(idle);
    idle = setTimeout(() => stopped.abort(), ms);
  };
  try {
    const stream = await openAi(base).chat.completions.create({ model: 'small', messages, tools, stream: true }, { signal: stopped.signal });
    let text = '';
    wait();
    for await (const { choices } of stream) {
      wait();
      text += choices[0]?.delta.content ?? '';
    }
    if (stopped.signal.aborted) throw new Error('no event for too long');
    return text;
  } finally {
    clearTimeout(idle);
  }
}
