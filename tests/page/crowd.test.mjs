// Ten thousand sessions: the page stays quick.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { launch, live, open } from './browser.mjs';
import { Monitor, beats, crowd } from './monitor.mjs';

const count = 10000;
const rows = count + 3 + 1;  // with the headings of the groups and the table's head
let browser;
let monitor;
before(async () => {
  browser = await launch();
  monitor = await Monitor.start();
  await crowd(monitor, count);
});
after(async () => {
  await browser.close();
  await monitor.end();
});

/** Scrolls through all of it for a second and a half: the intervals between frames, in ms. */
const scroll = (page) => page.evaluate(() => new Promise((done) => {
  const end = document.documentElement.scrollHeight - innerHeight;
  const begin = performance.now();
  const frames = [];
  let last = null;
  const step = (time) => {
    if (last !== null) frames.push(time - last);
    last = time;
    const share = (performance.now() - begin) / 1500;
    // There and back, first in leaps and then row by row.
    scrollTo(0, share < 0.5 ? end * share * 2 : end - (share - 0.5) * 3000);
    if (share < 1) requestAnimationFrame(step);
    else done(frames);
  };
  requestAnimationFrame(step);
}));

/** Processor time of the monitor so far, ms. */
function monitorBusy() {
  const fields = readFileSync(`/proc/${monitor.pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

test('ten thousand sessions are complete at once, and little is sent for the page', async (t) => {
  // Others use this machine, too: the best of five. Processor time is the work itself.
  let wall = Infinity;
  let work = Infinity;
  for (let attempt = 0; attempt < 5; ++attempt) {
    const page = await open(browser, 'about:blank');
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
    const before = monitorBusy();
    const begun = performance.now();
    await page.goto(monitor.url, { waitUntil: 'commit' });
    await page.locator(`.sessions[aria-rowcount="${rows}"]`).waitFor();
    const took = performance.now() - begun;
    const { metrics } = await devtools.send('Performance.getMetrics');
    const busy = monitorBusy() - before + 1000 * metrics.filter(({ name }) => ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'].includes(name))
      .reduce((sum, { value }) => sum + value, 0);
    const bytes = await page.evaluate(() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .filter(({ name }) => !name.includes('/api/')).reduce((sum, { transferSize }) => sum + transferSize, 0));
    t.diagnostic(`complete after ${Math.round(took)} ms; ${Math.round(busy)} ms of work in page and monitor; ${Math.round(bytes / 1000)} KB for the page`);
    assert.ok(bytes > 10_000 && bytes <= 121_000, `${bytes} bytes`);
    wall = Math.min(wall, took);
    work = Math.min(work, busy);
    await page.context().close();
    if (wall < 700 && work < 500) break;
  }
  // 0.7 s on a quiet machine.
  assert.ok(work < 700, `${work} ms of work`);
  assert.ok(wall < 5000, `${wall} ms`);
});

test('ten thousand sessions scroll, filter and change without lag', async (t) => {
  const begun = performance.now();
  const page = await open(browser, monitor.url);
  await live(page);
  const table = page.locator(`.sessions[aria-rowcount="${rows}"]`);
  await table.waitFor();
  t.diagnostic(`all ${count} are there after ${Math.round(performance.now() - begun)} ms`);
  assert.ok(await page.locator('.sessions tbody tr').count() < 60);

  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  // Work of the page itself; drawing is another thread's, and time goes by while others have the core.
  const busy = async () => (await devtools.send('Performance.getMetrics')).metrics
    .filter(({ name }) => ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'].includes(name))
    .reduce((sum, { value }) => sum + 1000 * value, 0);
  // What others do on this machine counts, too: the best of three.
  let work = Infinity;
  for (let attempt = 0; attempt < 3 && work >= 16.7; ++attempt) {
    const before = await busy();
    const frames = (await scroll(page)).sort((a, b) => a - b);
    work = (await busy() - before) / frames.length;
    const at = (share) => frames[Math.floor(share * (frames.length - 1))];
    t.diagnostic(`${frames.length} frames in 1.5 s; interval median ${at(0.5).toFixed(1)} ms, 95 % ${at(0.95).toFixed(1)} ms, ` +
      `longest ${at(1).toFixed(1)} ms; the page's work ${work.toFixed(1)} ms a frame`);
  }
  // How many frames the machine then draws in time is its own affair.
  assert.ok(work < 16.7, 'a frame is done before the next one');

  await page.evaluate(() => scrollTo(0, 0));
  const typed = await page.evaluate(async () => {
    const search = document.getElementById('search');
    const begin = performance.now();
    search.value = 'crowd-1234';
    search.dispatchEvent(new Event('input'));
    await new Promise(requestAnimationFrame);
    return performance.now() - begin;
  });
  t.diagnostic(`a search shows after ${typed.toFixed(1)} ms`);
  assert.equal(await table.count(), 0, 'fewer rows');

  await page.getByRole('searchbox').fill('crowded');
  await monitor.report('crowded', ...beats(9, 'reflection'), { kind: 'state_change', type: 'x' }, ...beats(9, 'reflection', 10));
  const row = page.locator('.sessions a.id[href="/sessions/crowded"]');
  await row.waitFor();
  assert.deepEqual(page.faults, []);
});
