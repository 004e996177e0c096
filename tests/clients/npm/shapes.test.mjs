// Real clients, and streams in every shape that servers and gateways were reported to give them. Each client gets through
// the proxy what it gets straight. An answer comes at once, or late, or pauses in its middle.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';
import * as clients from './clients.mjs';
import { ModelBackend } from './model_backend.mjs';
import { Monitor } from './monitor.mjs';

const pause = 2_500;  // Keep-alives come each second, and the head after one.

const vllm = {
  '/version': () => JSON.stringify({ version: '0.12.0' }),
  '/health': () => '',
  '/metrics': (open, looks) => [
    `vllm:prompt_tokens_total{engine="0",model_name="small"} ${looks * 400}`,
    'vllm:generation_tokens_total{engine="0",model_name="small"} 7',
    `vllm:num_requests_running{engine="0",model_name="small"} ${open}`,
    'vllm:num_requests_waiting{engine="0",model_name="small"} 0', 'process_start_time_seconds 1.7e9', ''].join('\n'),
};

const numbered = (event, at) => (event.startsWith('{') ? event : `id: ${at}\n${event}`);
const shapes = {
  plain: {},
  'text/plain': { type: 'text/plain; charset=utf-8' },
  'no type': { type: null },
  'a type in capitals': { type: 'Text/Event-Stream' },
  'application/json': { type: 'application/json' },
  gzip: { packed: 'gzip' },
  brotli: { packed: 'br' },
  'events with ids': { shape: numbered },
  'carriage returns': { shape: (event) => event.replaceAll('\n', '\r\n') },
  'comments of the server': { shape: (event) => (event.startsWith('{') ? event : `: ping\n\n${event}`) },
  'byte by byte': { bytewise: true },
};
const packers = {
  gzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
  br: () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};
/** Others would get the packed bytes of a server that did not ask what they can read. */
const unpacks = (client, shape) => shape !== 'brotli' || !raw[client] || client.startsWith('curl');
const times = ['at once', 'late', 'with a pause'];

/** A gateway in front of a model's server: `/SHAPE/TIME/…` gives the server's stream in that shape. */
class Gateway {
  #open = 0;
  #looks = 0;

  static async start(server) {
    const gateway = new Gateway();
    gateway.listener = createServer((request, response) => gateway.#answer(server, request, response).catch(() => response.destroy()));
    gateway.listener.keepAliveTimeout = 0;  // else a client could send into a connection that ends
    gateway.listener.listen(0, '127.0.0.1');
    await once(gateway.listener, 'listening');
    gateway.url = `http://127.0.0.1:${gateway.listener.address().port}`;
    return gateway;
  }

  end() {
    this.listener.closeAllConnections();
    this.listener.close();
  }

  async #answer(server, request, response) {
    const own = vllm[request.url];
    if (own) return response.end(own(this.#open, ++this.#looks));
    const [, shape, time, path] = request.url.match(/^\/([^/]+)\/([^/]+)(\/.*)$/) ?? [];
    if (!shape) return response.writeHead(404).end();
    this.#open += 1;
    response.on('close', () => { this.#open -= 1; });
    let body = '';
    for await (const piece of request) body += piece;
    const answer = await fetch(server + path, { method: 'POST', body });
    const lines = answer.headers.get('content-type').includes('ndjson');
    const events = (await answer.text()).split(lines ? /(?<=\n)/ : /(?<=\n\n)/);
    return this.#play(response, { own: answer.headers.get('content-type'), ...shapes[decodeURIComponent(shape)] }, decodeURIComponent(time), events);
  }

  async #play(response, { own, type = own, packed, shape = (event) => event, bytewise }, time, events) {
    const [first, second] = [Math.floor(events.length / 2), events.length];
    if (time === 'late') await setTimeout(pause);
    if (type) response.setHeader('Content-Type', type);
    if (packed) response.setHeader('Content-Encoding', packed);
    const packer = packed ? packers[packed]() : null;
    packer?.pipe(response);
    response.flushHeaders();
    for (let at = 0; at < second; at += 1) {
      if (time === 'with a pause' && at === first) await setTimeout(pause);
      const bytes = Buffer.from(shape(events[at], at));
      for (const piece of bytewise ? bytes.map((byte) => byte).values() : [bytes]) {
        (packer ?? response).write(bytewise ? Buffer.from([piece]) : piece);
      }
      packer?.flush();
      await setTimeout(1);
    }
    (packer ?? response).end();
  }
}

const kept = /^: still at work\n/gm;
let fed = 0;

const body = JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content: 'SAY One word, and another.' }] });

/** Without the proxy's comments and the ids of an answer. */
function bare(status, text) {
  fed += text.match(kept)?.length ?? 0;
  return [status, text.replaceAll(kept, '').replaceAll(/"(created|id|timings)":[^,}]*/g, '')];
}

async function bytes(base) {
  const answer = await fetch(`${base}/v1/chat/completions`, { method: 'POST', body });
  return bare(answer.status, await answer.text());
}

/** A process that asks by clients that are no packages of npm. */
class RawClients {
  #waiting = new Map();
  #asked = 0;
  #process;

  constructor(...command) {
    this.#process = spawn(...command, { stdio: ['pipe', 'pipe', 'inherit'], cwd: new URL('.', import.meta.url) });
    createInterface(this.#process.stdout).on('line', (line) => {
      const [id, status, text] = line.split('\t');
      this.#waiting.get(id)(bare(Number(status), Buffer.from(text, 'base64').toString()));
    });
    this.#process.on('exit', () => {
      for (const resolve of this.#waiting.values()) resolve([0, 'the client ended']);
    });
  }

  ask(client, base) {
    const id = `${++this.#asked}`;
    this.#process.stdin.write(`${[id, client, `${base}/v1/chat/completions`, body].join('\t')}\n`);
    return new Promise((resolve) => { this.#waiting.set(id, resolve); });
  }

  end() {
    this.#process.stdin.end();
    return once(this.#process, 'exit');
  }
}

const python = new RawClients('/usr/bin/python3', ['raw_clients.py']);
const raw = Object.fromEntries(['http.client', 'httpx', 'requests', 'aiohttp', 'curl', 'curl that offers HTTP/2'].map((name) => [name, python]));
// npm_test.sh says which of them this machine has.
const compilers = (process.env.WATCHDOG_COMPILERS ?? '').split(' ');
if (compilers.includes('javac')) raw['HttpClient of the JDK'] = new RawClients('java', ['RawClients.java']);
if (compilers.includes('go')) raw.Go = new RawClients('go', ['run', 'raw_clients.go']);
const asked = {
  bytes,
  ...Object.fromEntries(Object.entries(raw).map(([client, by]) => [client, (base) => by.ask(client, base)])),
  'openai, chat': clients.openAiStream,
  'openai, responses': clients.openAiResponses,
  'AI SDK': clients.aiStream,
  Anthropic: clients.anthropicStream,
  LangGraph: clients.langGraph,
  ollama: clients.ollamaStream,
};

describe('shapes of streams', () => {
  const closing = [...new Set(Object.values(raw))];
  const gateway = {}, monitor = {};
  before(async () => {
    for (const kind of ['llama_cpp', 'ollama']) {
      const server = await ModelBackend.start({ kind, prompt_tokens: 10, prefill: 5_000, decode: 5_000, parallel: 128, cache: false }, 100);
      // The proxy judges by one of them which requests its server works on.
      gateway[kind] = { straight: await Gateway.start(server.url), through: await Gateway.start(server.url) };
      monitor[kind] = await Monitor.start({
        WATCHDOG_PROXY_UPSTREAM: gateway[kind].through.url,
        WATCHDOG_PROXY_PORT: '0',
        WATCHDOG_INTERNAL_TIMES: 'proxy.keep_alive_after_seconds=0,proxy.keep_alive_every_seconds=0,proxy.look_every_ms=200',
      });
      closing.push(monitor[kind], gateway[kind].straight, gateway[kind].through, server);
    }
    await setTimeout(1_000);
  });
  after(async () => {
    for (const one of closing) await one.end();
  });

  // All of one time together: the totals of the server move for all of them, and no answer comes meanwhile.
  for (const time of times) {
    it(`answers that come ${time}`, async () => {
      fed = 0;
      const rows = Object.entries(asked).flatMap(([name, ask]) =>
        Object.keys(shapes).filter((shape) => unpacks(name, shape)).map((shape) => [name, ask, shape]));
      await Promise.all(rows.map(async ([name, ask, shape]) => {
        const kind = name === 'ollama' ? 'ollama' : 'llama_cpp';
        const path = `/${encodeURIComponent(shape)}/${encodeURIComponent(time)}`;
        const [straight, through] = await Promise.all([ask(gateway[kind].straight.url + path),
                                                       ask(monitor[kind].models + path).catch((error) => `${error}`)]);
        assert.deepEqual(through, straight, `${name}: ${shape}, ${time}`);
        if (Array.isArray(straight)) assert.equal(straight[0], 200, straight[1]);
        else assert.deepEqual(straight, clients.whole);
      }));
      if (time !== 'at once') assert.ok(fed > 0, 'no keep-alive came');
    });
  }
});
