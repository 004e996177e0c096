// The vitest helper with the real vitest: its own monitor, signals, what a run leaves behind, and its types.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'watchdog-harness-'));
after(() => rmSync(root, { recursive: true, force: true }));

const head = `import { expect, test as base } from 'vitest';
import { TestSession, fixtures, matchers } from 'watchdog-client/vitest';
expect.extend(matchers);
const test = base.extend(fixtures);
`;

/** A project with these files, and a run of vitest in it. */
function project(name, files) {
  const folder = join(root, name);
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  symlinkSync(here('node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return {
    folder,
    run(more = {}, words = []) {
      const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key === 'WATCHDOG_PROGRAM' || !/^(WATCHDOG|NODE)_/.test(key)));
      const output = openSync(join(folder, 'output'), 'w');
      const child = spawn(process.execPath, [here('node_modules/vitest/vitest.mjs'), 'run', ...words],
                          { cwd: folder, env: { ...env, NO_COLOR: '1', CI: '1', TMPDIR: join(folder, 'tmp'), ...more }, stdio: ['ignore', output, output] });
      Object.defineProperty(child, 'text', { get: () => readFileSync(join(folder, 'output'), 'utf8') });
      child.over = once(child, 'exit');
      return child;
    },
    /** Waits until no monitor of it is left. */
    isClean: () => until(() => !readdirSync(join(folder, 'tmp')).some((one) => one.startsWith('watchdog-tests-'))),
  };
}

async function until(isSo, what = () => 'it is not so') {
  for (const begun = performance.now(); !isSo();) {
    assert.ok(performance.now() - begun < 90_000, what());
    await sleep(50);
  }
}

function isGone(pid) {
  try {
    return /\) [XZ] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

const isDone = (text) => `${head}
test('one', async ({ watchdog }) => {
  watchdog.reporter().completed();
  await expect(watchdog).toComplete();
  ${text}
}, 120_000);
test('two', async ({ watchdog }) => {
  watchdog.reporter().completed();
  await expect(watchdog.session).toBecome('completed');
}, 120_000);`;

describe('vitest', { concurrency: 2, timeout: 200_000 }, () => {
  test('globalSetup starts one monitor for the whole run', async () => {
    const text = isDone(`console.log('server', process.env.WATCHDOG_SERVER);
      await expect(watchdog.monitor.cancel(watchdog.session)).rejects.toThrow(/409/);  // not 401: it has the token`);
    const { run, isClean } = project('setup', { 'a.test.js': text, 'b.test.js': text, 'vitest.config.js': "export default { test: { globalSetup: ['watchdog-client/vitest'] } };" });
    const child = run();
    await child.over;
    assert.match(child.text, /Tests {2}4 passed \(4\)/, child.text);
    assert.equal(new Set(child.text.match(/server http\S+/g)).size, 1, child.text);
    await isClean();
  });

  test('without a monitor one test fails and says why, and the rest is skipped', async () => {
    const { run } = project('none', { 'a.test.js': isDone('') });
    const child = run({ WATCHDOG_PROGRAM: '/absent' });
    await child.over;
    assert.match(child.text, /Tests {2}1 failed \| 1 skipped \(2\)/, child.text);
    assert.match(child.text, /there is no program \/absent/);
  });

  for (const pool of ['forks', 'threads']) {
    test(`a signal ends a hanging run in ${pool} with its agents and its own monitor, and a wait for nobody says so`, async () => {
      const { folder, run, isClean } = project(`hang-${pool}`, { 'a.test.js': `${head}
        TestSession.sayAfter = 200;
        test('it hangs', async ({ watchdog }) => {
          watchdog.start('sh', ['-c', 'sleep 1000 & echo $! >pid; wait']);
          await expect(watchdog).toComplete();
        }, 1_000_000);` });
      const child = run({}, ['--pool', pool]);
      const says = (pattern) => until(() => pattern.test(child.text), () => child.text);
      await says(/still waiting for it-hangs-\S+: nobody reports; agents must see WATCHDOG_SESSION/);
      const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
      assert.ok(readdirSync(join(folder, 'tmp')).some((one) => one.startsWith('watchdog-tests-')));
      child.kill('SIGTERM');
      await child.over;
      await until(() => isGone(pid));
      await isClean();
      // vitest ends its threads without a word.
      if (pool === 'forks') await says(/asked to end \(SIGTERM\)\n {2}expected {2}completed[^]*ended as {2}interrupted/);
    });
  }

  test('the types fit the tutorial and the packages', async () => {
    const { folder } = project('types', {});
    const flags = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--lib', 'es2022,esnext.disposable', '--module', 'nodenext', '--types', 'node'];
    const example = readFileSync(here('tutorial.md'), 'utf8').split('## The same in vitest')[1].match(/```js\n([^]*?)```/)[1];
    writeFileSync(join(folder, 'tutorial.test.ts'), example);
    writeFileSync(join(folder, 'use.ts'), readFileSync(here('use.ts.txt')));
    const child = spawn(process.execPath, [here('node_modules/typescript/bin/tsc'), ...flags, 'tutorial.test.ts', 'use.ts'], { cwd: folder });
    let text = '';
    child.stdout.on('data', (piece) => { text += piece; });
    const [code] = await once(child, 'close');
    assert.equal(code, 0, text);
  });
});
