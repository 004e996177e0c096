// A failed wait in vitest names its proof in the JUnit report as well, with a text that is XML whatever the agent reports.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'watchdog-junit-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const agent = `
import { Reporter } from 'watchdog-client';
await new Reporter().run(async (watchdog) => {
  for (let step = 0; ; ++step) {
    watchdog.signal.throwIfAborted();
    watchdog.toolCall('search', { query: '<again> & ]]> \\x00' }, 'c' + step);
    watchdog.toolResult('search', 'nothing \\x1b[31m', 'c' + step);
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
});
`;
const tests = `
import { expect, test as base } from 'vitest';
import { fixtures, matchers } from 'watchdog-client/vitest';
expect.extend(matchers);
const test = base.extend(fixtures);
test('it loops', async ({ watchdog }) => {
  watchdog.start(process.execPath, ['agent.js']);
  await expect(watchdog).toComplete();
}, 0);
test('it finishes', async ({ watchdog }) => {
  watchdog.reporter().end('completed');
  await expect(watchdog).toComplete();
}, 0);
`;

test('the report of JUnit names the proof', () => {
  symlinkSync(here('node_modules'), join(folder, 'node_modules'));
  for (const [name, text] of Object.entries({ 'package.json': '{"type": "module"}', 'agent.js': agent, 'it.test.js': tests })) writeFileSync(join(folder, name), text);
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key === 'WATCHDOG_PROGRAM' || !/^(WATCHDOG|NODE)_/.test(key)));
  const done = spawnSync(process.execPath, [here('node_modules/vitest/vitest.mjs'), 'run', '--reporter=junit', '--outputFile=report.xml'],
                         { cwd: folder, env: { ...env, NO_COLOR: '1', CI: '1' }, encoding: 'utf8' });
  assert.equal(done.status, 1, done.stdout + done.stderr);
  const report = readFileSync(join(folder, 'report.xml'), 'utf8');
  assert.match(report, /<testsuites .*tests="2" failures="1" errors="0"/);
  const [, failed] = report.match(/<testcase [^>]*name="it loops"[^>]*>([\s\S]*?)<\/testcase>/);
  assert.match(failed, /<failure message="session it-loops-\w+: it has been looping for \d+ further iterations \(limit 3\)/);
  assert.match(failed, /Calls search \d+ times in a row, with the same arguments and the same result/);
  assert.match(failed, /timeline +\d+ entries[\s\S]*tool_call search/);
  assert.doesNotMatch(report, /[\x00-\x08\x0b\x0c\x0e-\x1f]/);
});
