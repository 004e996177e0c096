// Clients on their default limits, and a model that needs longer than that to read its prompt. A hundred seconds of theirs
// are one here: the server's time, the limits and the proxy's settings all go by the same factor.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Agent, setGlobalDispatcher } from 'undici';
import { Monitor as Client } from 'watchdog-client';
import * as clients from './clients.mjs';
import { ModelBackend } from './model_backend.mjs';
import { Monitor } from './monitor.mjs';

const scale = 100;
const seconds = (count) => count * 1000 / scale;  // as milliseconds here

// What Node's fetch has by default: 300 s for the head, and for each pause after it.
setGlobalDispatcher(new Agent({ headersTimeout: seconds(300), bodyTimeout: seconds(300) }));
const patient = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

// 900 s of reading: longer than any of these limits.
const slow = { prompt_tokens: 45_000, prefill: 50, batch: 512, decode: 40, cache: true, parallel: 32 };
const silent = { ...slow, kind: 'llama_cpp_2025' };  // its head comes with the first token
const ollama = { ...slow, kind: 'ollama' };
const early = { ...slow, ping_s: 0 };  // its head comes at once, and then nothing

/** A server, and a monitor that passes on to it. */
async function behind(t, scenario, settings = {}) {
  const server = await ModelBackend.start({ ...scenario, parallel: 1 }, scale);
  t.after(() => server.end());
  const monitor = await Monitor.start({
    WATCHDOG_PROXY_UPSTREAM: server.url,
    WATCHDOG_PROXY_PORT: '0',
    WATCHDOG_PROXY_KEEP_ALIVE_AFTER_SECONDS: '0',  // each second: the shortest there is
    WATCHDOG_PROXY_KEEP_ALIVE_EVERY_SECONDS: '0',
    WATCHDOG_PROXY_LOOK_EVERY_MS: '100',
    ...settings,
  });
  t.after(() => monitor.end());
  const told = new Client({ server: monitor.url, token: monitor.token });
  return {
    server,
    told,
    session: (name) => `${monitor.models}/s/${name}`,
    async events(name) {
      const all = [];
      for await (const event of told.events(name)) all.push(event);
      return all;
    },
  };
}

/** All that an error and its causes say; fails if there was none. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    const said = [];
    for (let at = error; at; at = at.cause) said.push(at.name, at.code, at.message);
    return said.join(' ');
  }
  throw new Error('it did not fail');
}

const inOnePiece = { WATCHDOG_PROXY_KEEP_ALIVE_WHITESPACE: 'true' };
const emptyDelta = { WATCHDOG_PROXY_KEEP_ALIVE: 'empty_delta' };
const headers = /UND_ERR_HEADERS_TIMEOUT|Request timed out/;  // the latter tells no cause
const survivors = [
  ['openai, a stream, by the 300 s of fetch', silent, headers, clients.openAiStream],
  ['openai, in one piece, by the 300 s of fetch', silent, headers, clients.openAiWhole, inOnePiece],
  ['openai, a response as a stream, by the 300 s of fetch', silent, headers, clients.openAiResponses],
  ['openai, a stream whose head came, by the 300 s of fetch from byte to byte', early, /UND_ERR_BODY_TIMEOUT/, clients.openAiStream],
  ['openai, a stream, by its own 600 s', silent, /Request timed out/,
   (base) => clients.openAiStream(base, { timeout: seconds(600), fetchOptions: { dispatcher: patient } })],
  ['openai with pieces without content', silent, headers, clients.openAiStream, emptyDelta],
  ['AI SDK, a stream, by the 300 s of fetch', silent, headers, clients.aiStream],
  ['AI SDK, in one piece, by the 300 s of fetch', silent, headers, clients.aiWhole, inOnePiece],
  ['ollama, a stream, by the 300 s of fetch', ollama, headers, clients.ollamaStream],
  ['ollama, in one piece, by the 300 s of fetch', ollama, headers, clients.ollamaWhole, inOnePiece],
  ['ollama with pieces without content', ollama, headers, clients.ollamaStream, emptyDelta],
  ['LangGraph, by the 300 s of fetch', silent, headers, clients.langGraph],
  ['Anthropic, a stream, by the 300 s of fetch', silent, headers, clients.anthropicStream],
  ['Anthropic, in one piece, by the 300 s of fetch', silent, headers, clients.anthropicWhole, inOnePiece],
];

describe('model clients', { concurrency: true }, () => {
  const straight = new Map();  // a server of each kind
  before(async () => {
    for (const scenario of [silent, ollama, early]) straight.set(scenario, await ModelBackend.start({ ...scenario, cache: false }, scale));
  });
  after(async () => {
    for (const server of straight.values()) await server.end();
  });

  for (const [name, scenario, limit, ask, settings] of survivors) {
    test(`${name}: fails straight, and has it all through the proxy`, async (t) => {
      const there = await behind(t, scenario, settings);
      const [failed, got] = await Promise.all([failure(ask(straight.get(scenario).url)), ask(there.session('one'))]);
      assert.match(failed, limit);
      assert.deepEqual(got, clients.whole);
      const log = (await there.server.log()).filter(({ method }) => method === 'POST');
      assert.deepEqual(log.map(({ state }) => state), log.map(() => 'answered'));
      await there.told.wait('one', 'state-change=tool_call');
    });
  }

  test('openai by default asks three times, and throws away what was read each time', async (t) => {
    const server = await ModelBackend.start(silent, scale);
    t.after(() => server.end());
    assert.match(await failure(clients.openAiStream(server.url, { maxRetries: undefined })), headers);
    const log = await server.log();
    assert.deepEqual(log.map(({ target }) => target), Array(3).fill('/v1/chat/completions'));
    assert.deepEqual(log.slice(0, 2).map(({ state }) => state), ['cancelled', 'cancelled']);
  });

  // Comments are no events: who counts these must be sent some.
  test('a limit from event to event fires in spite of comments, and not with pieces without content', async (t) => {
    const [comments, pieces] = await Promise.all([behind(t, silent), behind(t, silent, emptyDelta)]);
    const ask = (there) => clients.impatientWithEvents(there.session('one'), seconds(300));
    const [failed, text] = await Promise.all([failure(ask(comments)), ask(pieces)]);
    assert.match(failed, /abort|no event/);
    assert.equal(text, clients.whole.text);
  });

  for (const [name, timeout] of [
    ['chunkMs of the AI SDK cannot be defused: it counts its own parts, and a piece without content makes none', { chunkMs: seconds(300) }],
    ['totalMs of the AI SDK cannot be defused: nothing that is sent resets it', { totalMs: seconds(600) }],
  ]) {
    test(name, async (t) => {
      const there = await behind(t, silent, emptyDelta);
      assert.match(await failure(clients.aiStream(there.session('one'), { timeout })), /abort|timeout/i);
    });
  }

  const hangs = { ...early, fault: { kind: 'hang', phase: 'reading', after: 20_000 } };
  test('once the server hangs nobody is fed: the client ends by its own limit, and the session is stuck for that', async (t) => {
    const there = await behind(t, hangs);
    assert.match(await failure(clients.openAiStream(there.session('one'))), /UND_ERR_BODY_TIMEOUT/);
    const events = await there.events('one');
    const hung = events.find(({ kind, state }) => kind === 'evidence' && state === 'hung');
    assert.ok(hung, JSON.stringify(events.filter(({ kind }) => kind === 'evidence')));
    assert.match(hung.text, /no movement for/);
  });

  test('with on_hung = fail the client of a server that hangs is told so, with what shows it', async (t) => {
    const there = await behind(t, hangs, { WATCHDOG_PROXY_ON_HUNG: 'fail' });
    const failed = await failure(clients.openAiStream(there.session('one')));
    assert.match(failed, /no movement for/);
    await there.told.wait('one', 'stuck');
  });

  test('a client that hangs up at a well-known limit is told with the setting', async (t) => {
    const there = await behind(t, ollama, { WATCHDOG_PROXY_KEEP_ALIVE: 'off' });
    const impatient = (url, init) => fetch(url, { ...init, dispatcher: patient, signal: AbortSignal.timeout(30_000) });
    assert.match(await failure(clients.ollamaStream(there.session('one'), impatient)), /timeout/i);
  });
});
