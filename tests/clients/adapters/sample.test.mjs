// Run by adapters.test.mjs with vitest: three of them are to fail.

import { createRequire } from 'node:module';
import { expect, test as base } from 'vitest';
import { fixtures, matchers } from 'watchdog-client/vitest';

expect.extend(matchers);
const test = base.extend(fixtures);

const agent = (last) => ['--input-type=module', '-e', `
  import { Reporter } from '${createRequire(import.meta.url).resolve('watchdog-client')}';
  const one = new Reporter(undefined, { agent: 'sample', log: null });
  await one.run(async () => {
    for (let step = 0; step < 3; ++step) one.stateChange('worked', { step });
    ${last}
  });`];

test('it completes', async ({ watchdog }) => {
  watchdog.start(process.execPath, agent(''));
  await expect(watchdog).toComplete();
  expect((await watchdog.events('state_change')).map(({ data }) => data.step)).toEqual([0, 1, 2]);
}, 60_000);

test('it asks first', async ({ watchdog }) => {
  watchdog.reporter().waitFor('approval');
  await expect(watchdog).toBecome('health=blocked');
  await expect(watchdog.session).toBecome(({ waitingFor }) => waitingFor === 'approval');
}, 60_000);

test('it fails', async ({ watchdog }) => {
  watchdog.start(process.execPath, agent("throw new Error('boom');"), { stdio: 'ignore' });
  await expect(watchdog).toComplete();
}, 60_000);

test('it vanishes', async ({ watchdog }) => {
  watchdog.start(process.execPath, agent('await one.flush(); process.exit(3);'));
  await expect(watchdog).toComplete();
}, 60_000);

test('it takes longer than an outer limit', async ({ watchdog }) => {
  watchdog.reporter().heartbeat(1);
  await expect(watchdog).toComplete();
}, 1000);
