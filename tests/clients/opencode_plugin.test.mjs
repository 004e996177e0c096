// The plugin for opencode, with the events that opencode gives it, against a monitor that a test plays.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, beforeEach, test } from 'node:test';

let Watchdog;
let server;
let heard;
let answer;
let aborted;
let away = false;
let slowness = 0;
let status = 200;
// opencode loads the file as a module whatever its name is; Node goes by the name.
const directory = mkdtempSync(join(tmpdir(), 'plugin-'));

before(async () => {
  const module = join(directory, 'watchdog.mjs');
  copyFileSync(new URL('../../clients/opencode/watchdog.js', import.meta.url), module);
  ({ Watchdog } = await import(module));
  server = createServer((request, response) => {
    if (away) return void request.socket.destroy();
    let body = '';
    request.on('data', (piece) => (body += piece));
    request.on('end', () => {
      const told = JSON.parse(body);
      heard.push({ url: request.url, ...told });
      response.statusCode = status;
      setTimeout(() => response.end(JSON.stringify(typeof answer === 'function' ? answer(told) : answer)), slowness);
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
});
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(directory, { recursive: true });
});
beforeEach(() => {
  heard = [];
  answer = {};
  aborted = [];
  process.env.WATCHDOG_SERVER = `http://127.0.0.1:${server.address().port}/`;
  delete process.env.WATCHDOG_SESSION;
});

const plugin = () =>
  Watchdog({ client: { session: { abort: async ({ path }) => void aborted.push(path.id) } } });
const event = (type, properties, id = 'evt_1') => ({ event: { id, type, properties } });

test('each event says the folder in which opencode works', async () => {
  const hooks = await Watchdog({ client: {}, directory: '/srv/shop' });
  await hooks['chat.message']({ sessionID: 'a' }, { parts: [{ type: 'text', text: 'Go' }] });
  await hooks.event(event('session.idle', { sessionID: 'a' }));
  assert.deepEqual(heard.map(({ cwd }) => cwd), ['/srv/shop', '/srv/shop']);
});

test('a run is reported in its order, in the form that the monitor reads', async () => {
  const hooks = await plugin();
  await hooks.event(event('session.created', { sessionID: 'a', info: { id: 'a' } }));
  await hooks['chat.message'](
    { sessionID: 'a' },
    { parts: [{ type: 'text', text: 'Go' }, { type: 'text', text: 'seen', synthetic: true }] },
  );
  await hooks.event(event('message.part.delta', { sessionID: 'a', delta: 'H' }));
  await hooks['tool.execute.before']({ tool: 'bash', sessionID: 'a', callID: 'c' }, { args: { x: 1 } });
  await hooks['tool.execute.after']({ tool: 'bash', sessionID: 'a', callID: 'c' }, { output: 'ok' });
  await hooks.event(event('session.idle', { sessionID: 'a' }));
  assert.deepEqual(heard, [
    {
      url: '/api/hooks/opencode',
      id: 'evt_1',
      type: 'session.created',
      properties: { sessionID: 'a', info: { id: 'a' } },
    },
    { url: '/api/hooks/opencode', type: 'chat.message', properties: { sessionID: 'a', text: 'Go' } },
    {
      url: '/api/hooks/opencode',
      type: 'tool.execute.before',
      properties: { tool: 'bash', sessionID: 'a', callID: 'c', args: { x: 1 } },
    },
    {
      url: '/api/hooks/opencode',
      type: 'tool.execute.after',
      properties: { tool: 'bash', sessionID: 'a', callID: 'c', output: 'ok' },
    },
    { url: '/api/hooks/opencode', id: 'evt_1', type: 'session.idle', properties: { sessionID: 'a' } },
  ]);
  assert.deepEqual(aborted, []);
});

test('the session of a run is the main one; its children keep their own names', async () => {
  process.env.WATCHDOG_SESSION = 'run 1';
  const hooks = await plugin();
  await hooks.event(event('session.created', { sessionID: 'a', info: { id: 'a' } }));
  await hooks.event(event('session.created', { sessionID: 'b', info: { id: 'b', parentID: 'a' } }));
  await hooks.event(event('session.idle', { sessionID: 'b' }));
  await hooks.event(event('session.idle', { sessionID: 'a' }));
  assert.deepEqual(
    heard.map(({ url }) => url),
    [
      '/api/hooks/opencode?session=run%201',
      '/api/hooks/opencode',
      '/api/hooks/opencode',
      '/api/hooks/opencode?session=run%201',
    ],
  );
});

test('a cancel denies the call and aborts the session', async () => {
  const hooks = await plugin();
  answer = { continue: false, stopReason: 'cancelled by ann: enough' };
  await assert.rejects(
    hooks['tool.execute.before']({ tool: 'bash', sessionID: 'a', callID: 'c' }, { args: {} }),
    /cancelled by ann: enough/,
  );
  await hooks.event(event('session.status', { sessionID: 'a', status: { type: 'busy' } }));
  assert.deepEqual(aborted, ['a', 'a']);
});

test('a monitor that is away stops nothing', async () => {
  process.env.WATCHDOG_SERVER = 'http://127.0.0.1:1';
  const hooks = await plugin();
  await hooks['tool.execute.before']({ tool: 'bash', sessionID: 'a', callID: 'c' }, { args: {} });
  await hooks.event(event('session.idle', { sessionID: 'a' }));
  assert.deepEqual(heard, []);
});

test('events that a slow monitor missed come in their order, at the latest with the end of the turn', async () => {
  const hooks = await plugin();
  away = true;
  await hooks['chat.message']({ sessionID: 'a' }, { parts: [{ type: 'text', text: 'Go' }] });
  await hooks['tool.execute.before']({ tool: 'bash', sessionID: 'a', callID: 'c' }, { args: {} });
  away = false;
  assert.deepEqual(heard, []);
  await hooks.event(event('session.idle', { sessionID: 'a' }));
  assert.deepEqual(heard.map(({ type }) => type), ['chat.message', 'tool.execute.before', 'session.idle']);
});

test('the plugin keeps the newest events while the monitor is away for long', async () => {
  const hooks = await plugin();
  away = true;
  for (let at = 0; at < 300; ++at) await hooks['chat.message']({ sessionID: 'a' }, { parts: [{ type: 'text', text: `${at}` }] });
  away = false;
  assert.deepEqual(heard, []);
  // A busy machine needs several turns for 200 events: each turn sends for a second.
  const texts = () => heard.map(({ properties }) => properties.text).filter((text) => text !== undefined);
  for (let turn = 0; turn < 30 && texts().length < 199; ++turn) await hooks.event(event('session.idle', { sessionID: 'a' }));
  assert.deepEqual(texts(), Array.from({ length: 199 }, (_, at) => `${at + 101}`));
});

test('a program that ends at once still reports the end of its turn', async () => {
  process.env.WATCHDOG_TOKEN = 'secret "of" ann';
  const child = spawn(process.execPath, ['--input-type=module', '-e', `
    import { Watchdog } from '${pathToFileURL(join(directory, 'watchdog.mjs'))}';
    const hooks = await Watchdog({ client: {} });
    hooks['chat.message']({ sessionID: 'a' }, { parts: [{ type: 'text', text: 'a "quoted" \\\\ text' }] });
    hooks.event({ event: { id: 'e', type: 'session.idle', properties: { sessionID: 'a' } } });
    process.exit(0);`], { stdio: 'inherit' });
  await new Promise((ended) => child.once('exit', ended));
  delete process.env.WATCHDOG_TOKEN;
  assert.deepEqual(heard.map(({ type }) => type), ['chat.message', 'session.idle']);
  assert.equal(heard[0].properties.text, 'a "quoted" \\ text');
});

test('Ctrl-C reports an abort of each turn that is not over, and still ends the program', async () => {
  const run = async (more) => {
    heard = [];
    const child = spawn(process.execPath, ['--input-type=module', '-e', `
      import { Watchdog } from '${pathToFileURL(join(directory, 'watchdog.mjs'))}';
      const hooks = await Watchdog({ client: {} });
      ${more}
      await hooks['chat.message']({ sessionID: 'works' }, { parts: [{ type: 'text', text: 'Go' }] });
      await hooks.event({ event: { type: 'session.status', properties: { sessionID: 'child', status: { type: 'busy' } } } });
      for (const [sessionID, type] of [['rests', 'session.idle'], ['failed', 'session.error'], ['deleted', 'session.deleted']]) {
        await hooks['chat.message']({ sessionID }, { parts: [{ type: 'text', text: 'Go' }] });
        await hooks.event({ event: { type, properties: { sessionID } } });
      }
      process.stdout.write('ready');
      setInterval(() => {}, 1000);`], { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.once('data', () => child.kill('SIGINT'));
    const ended = await new Promise((exited) => child.once('exit', (code, signal) => exited(signal ?? code)));
    return [ended, heard.slice(8).map(({ type, properties }) => [type, properties.sessionID, properties.error?.name])];
  };
  const aborts = [['session.error', 'works', 'MessageAbortedError'], ['session.error', 'child', 'MessageAbortedError']];
  assert.deepEqual(await run(''), ['SIGINT', aborts]);
  assert.deepEqual(await run('process.on("SIGINT", () => process.exit(7));'), [7, aborts], 'opencode decides where it handles the signal');
  assert.deepEqual(await run('await Watchdog({ client: {} });'), ['SIGINT', aborts], 'two projects of one program');
});

test('a slow monitor holds up the agent for some seconds at most, whatever is kept', async () => {
  const hooks = await plugin();
  away = true;
  for (let at = 0; at < 100; ++at) await hooks['chat.message']({ sessionID: 'a' }, { parts: [{ type: 'text', text: `${at}` }] });
  away = false;
  slowness = 300;
  const begun = performance.now();
  await hooks.event(event('session.idle', { sessionID: 'a' }));
  const took = performance.now() - begun;
  slowness = 0;
  assert.ok(took < 4500, `${took} ms`);
  assert.ok(heard.length < 20, `${heard.length} events`);
});

test('a monitor without room gets the event again, and one that refuses it does not', async () => {
  const hooks = await plugin();
  for (status of [507, 422]) await hooks.event(event('session.idle', { sessionID: 'a' }));
  status = 200;
  await hooks.event(event('session.idle', { sessionID: 'b' }));
  assert.deepEqual(heard.map(({ properties }) => properties.sessionID), ['a', 'a', 'a', 'b']);
});

test('a question is held where that was installed, and a person\'s answer goes to opencode', async () => {
  const held = join(directory, 'held.mjs');
  const text = readFileSync(new URL('../../clients/opencode/watchdog.js', import.meta.url), 'utf8');
  writeFileSync(held, text.replace(/^const installed = .*$/m, 'const installed = { server: "", headerFile: "", caFile: "", holdSeconds: 60 };'));
  const { Watchdog: Holding } = await import(held);
  const said = [];
  const client = { session: { abort: async () => {} }, _client: { post: async (options) => void said.push(options) } };
  const holding = await Holding({ client });
  const kinds = [
    ['permission.asked', { answers: 'permission', reply: { reply: 'reject', message: 'denied by ann' } }, '/permission/{requestID}/reply', { reply: 'reject', message: 'denied by ann' }],
    ['question.asked', { answers: 'question', reply: { answers: [['SQLite']] } }, '/question/{requestID}/reply', { answers: [['SQLite']] }],
    ['question.asked', { answers: 'question', reply: { answers: [] } }, '/question/{requestID}/reject', undefined],
    ['permission.asked', {}, null, undefined],
    ['permission.asked', { answers: '../session', reply: {} }, null, undefined],
  ];
  for (const [type, reply, url, body] of kinds) {
    said.length = 0;
    heard.length = 0;
    answer = reply;
    await holding.event(event(type, { sessionID: 'a', id: 'per_1' }));
    for (let tries = 0; tries < 500 && heard.length < 2; ++tries) await new Promise((soon) => setTimeout(soon, 10));
    assert.deepEqual(heard.map((told) => told.url), ['/api/hooks/opencode', '/api/hooks/opencode?hold=60'], 'it is told first, and then held');
    for (let tries = 0; url && tries < 500 && said.length === 0; ++tries) await new Promise((soon) => setTimeout(soon, 10));
    assert.deepEqual(said.map((one) => [one.url, one.path, one.body]), url ? [[url, { requestID: 'per_1' }, body]] : []);
  }
  heard.length = 0;
  await (await plugin()).event(event('permission.asked', { sessionID: 'a', id: 'per_1' }));
  assert.equal(heard.length, 1, 'off by default');
});

test('a cancel of one session leaves another one alone', async () => {
  const hooks = await plugin();
  away = true;
  await hooks['chat.message']({ sessionID: 'cancelled' }, { parts: [{ type: 'text', text: 'Go' }] });
  away = false;
  answer = ({ properties }) => (properties.sessionID === 'cancelled' ? { continue: false, stopReason: 'enough' } : {});
  await hooks.event(event('session.idle', { sessionID: 'other' }));
  assert.equal(heard.length, 2);
  assert.deepEqual(aborted, []);
});
