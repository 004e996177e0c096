// The official client, through the proxy, to a server on the official SDK.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Monitor } from './monitor.mjs';

const program = process.env.WATCHDOG_MONITOR;
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(WATCHDOG|CLAUDE)_/.test(name)));
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

let monitor;
before(async () => { monitor = await Monitor.start(); });
after(() => monitor.end());

async function connected(t, session, ...options) {
  const transport = new StdioClientTransport({
    command: program, args: ['mcp-proxy', '--server', monitor.url, ...options, '--', process.execPath, 'tool_server.mjs'],
    env: { ...environment, WATCHDOG_SESSION: session }, stderr: 'pipe',
  });
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  t.after(() => client.close());
  await client.connect(transport);
  return client;
}
const call = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
const words = (result) => result.content[0].text;

test('tools, calls and progress are those of the server', async (t) => {
  const client = await connected(t, 'plain');
  assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name), ['slow', 'logs', 'stuck', 'ask', 'die']);
  const heard = [];
  assert.equal(words(await call(client, 'slow', { steps: 3 }, { onprogress: (progress) => heard.push(progress) })), 'done');
  assert.deepEqual(heard, [1, 2, 3].map((step) => ({ progress: step, total: 3, message: `step ${step}` })));
  await client.close();
});

test('a call that moves outlives the deadline, also when the client did not ask for progress', async (t) => {
  const client = await connected(t, 'moves', '--deadline', '2');
  assert.equal(words(await call(client, 'slow', { steps: 12 })), 'done');
  await client.close();
});

test('messages of the server become progress, so a client that resets its timeout waits', async (t) => {
  const client = await connected(t, 'logs');
  await client.setLoggingLevel('info').catch(() => {});
  const heard = [];
  const options = { timeout: 2_500, resetTimeoutOnProgress: true, onprogress: (progress) => heard.push(progress.progress) };
  assert.equal(words(await call(client, 'logs', { lines: 7 }, options)), 'logged');
  assert.ok(heard.length >= 2, `${heard}`);
  assert.deepEqual(heard, [...heard].sort((a, b) => a - b));
  await client.close();
});

test('a stuck call is a result that says so, and the next call works', async (t) => {
  const client = await connected(t, 'stuck', '--deadline', '2');
  const [stuck, other] = await Promise.all([call(client, 'stuck'), call(client, 'slow', { steps: 1 })]);
  assert.equal(words(other), 'done');
  assert.equal(stuck.isError, true);
  assert.match(words(stuck), /^\[TIMEOUT\] Tool "stuck" made no progress for 2s/);
  assert.equal(words(await call(client, 'slow', { steps: 1 })), 'done');
  await client.close();
  for (let tries = 0; tries < 100; ++tries) {
    const { events } = await monitor.ask('/api/autonomous/sessions/stuck/events');
    if (events.some((event) => event.kind === 'tool_timeout' && event.name === 'stuck')) return;
    await pause(100);
  }
  assert.fail('the session does not say that the call was given up');
});

test('a question to a person stops the clock', async (t) => {
  const client = await connected(t, 'asks', '--deadline', '1');
  client.setRequestHandler(ElicitRequestSchema, async () => {
    await pause(3_000);
    return { action: 'accept', content: { yes: true } };
  });
  assert.equal(words(await call(client, 'ask')), 'accept');
  await client.close();
});

test('a server that dies costs its calls, and no connection', async (t) => {
  const client = await connected(t, 'dies');
  const lost = await call(client, 'die');
  assert.equal(lost.isError, true);
  assert.match(words(lost), /the tool server exited with code 3 before it answered/);
  assert.equal(words(await call(client, 'slow', { steps: 1 })), 'done');
  await client.close();
});

test('a server behind a URL, for clients of both revisions', async (t) => {
  const command = {
    command: program, args: ['mcp-proxy', '--server', monitor.url, '--header', 'Authorization: Bearer $TOKEN', `${monitor.url}/mcp`],
    env: { ...environment, TOKEN: monitor.token, WATCHDOG_SESSION: 'by-url' }, stderr: 'pipe',
  };
  const info = { name: 'test', version: '1' };
  const old = new Client(info, { capabilities: {} });
  const modern = new ModernClient(info, { versionNegotiation: { mode: 'auto' }, capabilities: {} });
  t.after(() => Promise.all([old.close(), modern.close()]));
  await old.connect(new StdioClientTransport(command));
  await modern.connect(new ModernStdio(command));
  for (const client of [old, modern]) {
    assert.ok((await client.listTools()).tools.some((tool) => tool.name === 'explain'));
    const found = await client.callTool({ name: 'agents', arguments: {} });
    assert.ok(Array.isArray(found.structuredContent.agents));
  }
  assert.equal(modern.getNegotiatedProtocolVersion?.() ?? '2026-07-28', '2026-07-28');
});
