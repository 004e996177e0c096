// Clients on their default limits, and a model that needs longer than that to read its prompt. A hundred seconds of theirs
// are one here: the server's time, the limits and the proxy's settings all go by the same factor.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
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

/** What waits for something that does not come ends too. */
const it = (name, run) => test(name, { timeout: 60_000 }, run);

/** A server, and a monitor that passes on to it and knows it by now. */
async function behind(t, { fault, prompt_tokens, ...scenario }, settings = {}) {
  const server = await ModelBackend.start({ ...scenario, prompt_tokens: 900_000, parallel: 1 }, scale);
  t.after(() => server.end());
  const monitor = await Monitor.start({
    WATCHDOG_PROXY_UPSTREAM: server.url,
    WATCHDOG_PROXY_PORT: '0',
    // Keep-alives each second: the shortest there is.
    WATCHDOG_INTERNAL_TIMES: 'proxy.keep_alive_after_seconds=0,proxy.keep_alive_every_seconds=0,proxy.look_every_ms=200',
    ...settings,
  });
  t.after(() => monitor.end());
  const told = new Client({ server: monitor.url, token: monitor.token });
  const session = (name) => `${monitor.models}/s/${name}`;
  /** The first such event of the session, as soon as it is there. */
  const event = async (name, like) => {
    for (; !t.signal.aborted; await setTimeout(50)) {
      try {
        for await (const one of told.events(name)) if (like(one)) return one;
      } catch (error) {
        if (error.status !== 404) throw error;  // it is not there yet
      }
    }
    throw t.signal.reason;
  };
  // To find a server's process takes a while; at this speed that would be many minutes of the first request.
  const enough = new AbortController();
  const first = fetch(`${session('before')}/v1/completions`, { method: 'POST', body: '{"prompt":"", "stream": true}', signal: enough.signal });
  const ended = first.then((answer) => answer.text()).catch(() => {});
  await event('before', ({ kind }) => kind === 'evidence');
  enough.abort();
  await ended;
  await server.change({ prompt_tokens, ...(fault && { fault }) });
  return { server, told, session, event };
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

const said = [{ role: 'user', content: 'SAY One word, and another.' }];
const inOnePiece = { WATCHDOG_PROXY_KEEP_ALIVE: 'whitespace' };
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

describe('model clients', { concurrency: 8 }, () => {
  const straight = new Map();  // a server of each kind
  before(async () => {
    for (const scenario of [silent, ollama, early]) straight.set(scenario, await ModelBackend.start({ ...scenario, cache: false }, scale));
  });
  after(async () => {
    for (const server of straight.values()) await server.end();
  });

  // The longest: it comes first. Those limits are known by their seconds, so this one is not scaled.
  it('a client that hangs up at a well-known limit is told with the setting', async (t) => {
    const there = await behind(t, { ...ollama, prompt_tokens: 900_000 }, { WATCHDOG_PROXY_KEEP_ALIVE: 'off' });
    const impatient = (url, init) => fetch(url, { ...init, dispatcher: patient, signal: AbortSignal.timeout(30_000) });
    assert.match(await failure(clients.ollamaStream(there.session('one'), impatient)), /timeout/i);
    const { text } = await there.event('one', ({ kind, name }) => kind === 'message' && name === 'client');
    assert.match(text, /^the client hung up after (29|30)\.\d s, before any answer: probably .* of Cline \(change it with .*requestTimeoutMs/);
  });

  for (const [name, scenario, limit, ask, settings] of survivors) {
    it(`${name}: fails straight, and has it all through the proxy`, async (t) => {
      const there = await behind(t, scenario, settings);
      const [failed, got] = await Promise.all([failure(ask(straight.get(scenario).url)), ask(there.session('one'))]);
      assert.match(failed, limit);
      assert.deepEqual(got, clients.whole);
      let log;  // the client may be done a moment before the server
      do log = (await there.server.log()).filter(({ method, body }) => method === 'POST' && body.includes('CALL')); while (log.some(({ state }) => state === 'open'));
      assert.deepEqual(log.map(({ state }) => state), log.map(() => 'answered'));
      await there.event('one', ({ kind, name: tool }) => kind === 'tool_call' && tool === 'read_file');
    });
  }

  it('openai by default asks three times, and throws away what was read each time', async (t) => {
    const server = await ModelBackend.start({ ...silent, cache: false }, scale);
    t.after(() => server.end());
    assert.match(await failure(clients.openAiStream(server.url, { maxRetries: undefined })), headers);
    const log = await server.log();
    assert.deepEqual(log.map(({ target }) => target), Array(3).fill('/v1/chat/completions'));
    assert.deepEqual(log.slice(0, 2).map(({ state }) => state), ['cancelled', 'cancelled']);
  });

  // Comments are no events: who counts these must be sent some.
  it('a limit from event to event fires in spite of comments, and not with pieces without content', async (t) => {
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
    it(name, async (t) => {
      const there = await behind(t, silent, emptyDelta);
      assert.match(await failure(clients.aiStream(there.session('one'), { timeout })), /abort|timeout/i);
    });
  }

  const openAi = [['stream', clients.openAiStream], ['whole', clients.openAiWhole], ['responses', clients.openAiResponses],
    ['retries', (base) => clients.openAiStream(base, { maxRetries: undefined })],
    ['ai-stream', clients.aiStream], ['ai-whole', clients.aiWhole],
    ['anthropic-stream', clients.anthropicStream], ['anthropic-whole', clients.anthropicWhole]];
  const ollamas = [['ollama-stream', clients.ollamaStream], ['ollama-whole', clients.ollamaWhole]];
  for (const [kind, scenario, all] of [['OpenAI and Anthropic', early, openAi], ['Ollama', ollama, ollamas]]) {
    it(`${kind}: over its budget a client fails with the owner's reason, and asks once`, async (t) => {
      const there = await behind(t, { ...scenario, prompt_tokens: 1_000, cache: false },
                                 { WATCHDOG_PROXY_BUDGETS_SMALL_TOKENS: '10', WATCHDOG_PROXY_BUDGETS_SMALL_REFUSE: 'true' });
      const asked = async () => (await there.server.log()).filter(({ method }) => method === 'POST').length;
      await Promise.all(all.map(async ([name, ask]) => {
        assert.deepEqual(await ask(there.session(name)), clients.whole, name);
        await there.event(name, ({ kind: what, name: by }) => what === 'message' && by === 'notification');
      }));
      const before = await asked();
      await Promise.all(all.map(async ([name, ask]) => {
        assert.match(await failure(ask(there.session(name))), /the budget small is used up: .* of 10 tokens of this session/, name);
        await there.event(name, ({ kind: what, text }) => what === 'wait' && text.includes('the budget small is used up'));
      }));
      assert.equal(await asked(), before, 'the server gets none of them');
    });
  }

  const isHung = ({ kind, state }) => kind === 'evidence' && state === 'hung';
  const shown = /no movement for \d+ s .*\/slots is unanswered for \d+ s, and its process has done nothing/;
  const hangs = { ...early, fault: { kind: 'hang', phase: 'reading', after: 20_000 } };
  it('once the server hangs nobody is fed: the client ends by its own limit, and the session is stuck for that', async (t) => {
    const there = await behind(t, hangs);
    // Keep-alives end before the hang is proved, and looks are not scaled: its limit must be longer than both need.
    const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: seconds(1500) });
    const failed = failure(clients.openAiStream(there.session('one'), { fetchOptions: { dispatcher } }));
    const hung = await there.event('one', isHung);
    assert.match(hung.text, shown);
    const { health, stuckBy, reason } = await there.told.progress('one');
    assert.deepEqual([health, stuckBy], ['stuck', 'F5']);
    assert.match(reason, /^The model server hangs: no movement for/);
    assert.match(await failed, /UND_ERR_BODY_TIMEOUT/);
  });

  it('with on_hung = fail the client of a server that hangs is told so, with what shows it', async (t) => {
    const there = await behind(t, hangs, { WATCHDOG_PROXY_ON_HUNG: 'fail' });
    const failed = await failure(clients.openAiStream(there.session('one'), { fetchOptions: { dispatcher: patient } }));
    assert.match(failed, /504 the model server hangs: /);
    assert.match(failed, shown);
    await there.event('one', isHung);
  });

  const paths = [
    [early, ['/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/messages', '/completion', '/v1/embeddings']],
    [ollama, ['/api/chat', '/api/generate', '/v1/chat/completions']],
  ];
  for (const [scenario, all] of paths) {
    const kind = scenario.kind ?? 'llama_cpp';
    it(`${kind}: but for comments, pings and blanks every answer is the server's, byte by byte`, async (t) => {
      const short = { ...scenario, prompt_tokens: 5_000, cache: false };
      const there = await behind(t, short, inOnePiece);
      const quick = await ModelBackend.start({ ...short, parallel: 1 }, 100 * scale);
      t.after(() => quick.end());
      let fed = 0;
      await Promise.all(all.flatMap((path) => [true, false].map(async (stream) => {
        const body = JSON.stringify({ model: 'small', stream, messages: said, prompt: said[0].content, input: said[0].content });
        const ask = async (base) => {
          const answer = await fetch(base + path, { method: 'POST', body, dispatcher: patient });
          return [answer.status, await answer.text()];
        };
        const [straight, [status, text]] = await Promise.all([ask(quick.url), ask(there.session('one'))]);
        const own = text.replaceAll(/^:.*\n/gm, '').replaceAll('event: ping\ndata: {"type": "ping"}\n\n', '').replaceAll(/^ +/gm, '');
        fed += text.length - own.length;
        assert.deepEqual([status, own], straight, path);
      })));
      assert.ok(fed > 10);
    });
  }
});
