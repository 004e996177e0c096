// The examples, each with the real package, the project's model server, and the real monitor.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Monitor as Client } from 'watchdog-client';
import { Monitor } from './monitor.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(WATCHDOG|OPENAI|LANG)/.test(name)));
let monitor;
let client;
let model;
let folder;

before(async () => {
  monitor = await Monitor.start();
  client = new Client({ server: monitor.url, token: monitor.token });
  model = spawn(process.env.WATCHDOG_MODEL_SERVER, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(model.stdout, 'data');
  Object.assign(environment, { OPENAI_BASE_URL: `${url}`.trim(), OPENAI_API_KEY: 'none', WATCHDOG_SERVER: monitor.url });
  folder = mkdtempSync(join(tmpdir(), 'watchdog-adapters-'));
  writeFileSync(join(folder, 'notes.txt'), 'some words');
});
after(async () => {
  model.kill();
  rmSync(folder, { recursive: true });
  await monitor.end();
});

function begin(session, command, more = {}) {
  const child = spawn(process.execPath, command, { env: { ...environment, WATCHDOG_SESSION: session, ...more }, cwd: folder });
  child.told = '';
  for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (piece) => { child.told += piece; });
  child.over = once(child, 'close');
  return child;
}

async function told(session) {
  const events = [];
  for await (const event of client.events(session)) events.push(event);
  return events;
}

/** What each example calls its phases. */
const phases = {
  'openai': ['reflection', 'action'],
  'ai-sdk': ['reflection'],
  'langgraph': ['__start__', 'reflection', 'tools'],
};

describe('adapters', { concurrency: true }, () => {
  for (const [name, expected] of Object.entries(phases)) {
    test(`${name}: phases, calls, tokens and the end are told`, async () => {
      const child = begin(name, [here(`${name}.js`), 'What is in here?']);
      const progress = await client.wait(name, 'completed', { child });
      await child.over;
      assert.match(child.told, /^I have read 1 files with 10 bytes/);
      assert.deepEqual([progress.task, progress.tools, progress.progress.lastChange], ['What is in here?', [], 'answered']);
      const events = await told(name);
      assert.deepEqual([...new Set(events.filter(({ source }) => source === 'loop').map(({ phase }) => phase))], expected);
      assert.deepEqual(events.filter(({ kind }) => kind === 'tool_call').map((call) => call.name), ['list_files', 'read_file', 'shell']);
      const results = events.filter(({ kind }) => kind === 'tool_result');
      assert.deepEqual(results.map(({ text }) => text.trim()), ['notes.txt', 'some words', '2 notes.txt']);
      const tokens = events.flatMap(({ counters }) => counters?.tokens ?? []);
      assert.ok(tokens.length > 2 && tokens.every((total, at) => at === 0 || total >= tokens[at - 1]), tokens);
      assert.ok(tokens.at(-1) >= 10, tokens);
    });

    test(`${name}: a cancel stops it while its model answers`, async () => {
      const session = `${name}-cancelled`;
      const child = begin(session, [here(`${name}.js`), 'What is in here?']);
      await client.wait(session, 'state-change=tool_call', { child });
      await client.cancel(session, { reason: 'enough' });
      const progress = await client.wait(session, 'cancelled', { child });
      assert.equal(progress.outcome.kind, 'cancelled');
      assert.notEqual((await child.over)[0], 0);
    });
  }

  test('vitest: the fixture gives each test a session, and its matchers fail with what happened', async () => {
    const child = begin('', [here('node_modules/vitest/vitest.mjs'), 'run', '--root', here('.'), 'sample.test.mjs'],
                        { NO_COLOR: '1', CI: '1' });
    await child.over;
    assert.match(child.told, /Tests {2}3 failed \| 2 passed \(5\)/, child.told);
    assert.match(child.told, /session it-fails-[^]*: it ended as failed instead\n\s+expected {2}completed[^]*timeline[^]*end failed \(error\): Error: boom/);
    assert.match(child.told, /its process exited with 3, and the session has not ended/);
    assert.match(child.told, /the wait was called off: Test timed out/);
  });
});
