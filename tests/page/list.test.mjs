// The list of sessions in a real browser, fed by a real monitor.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { barriers, launch, live, open } from './browser.mjs';
import { Monitor, beats, change, lives, populate } from './monitor.mjs';

let browser;
let monitor;
before(async () => {
  browser = await launch();
  monitor = await Monitor.start();
  await populate(monitor, 50);
});
after(async () => {
  await browser.close();
  await monitor.end();
});

/** Runs with the list open, and in the end nothing went wrong in it. */
function onPage(name, options, run) {
  test(name, async (t) => {
    const { path = '/', ...more } = options;
    const page = await open(browser, monitor.url + path, more);
    await live(page);
    await run(page, t);
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await page.context().close();
  });
}

const row = (page, session) => page.locator('.sessions tbody tr:not(.gap)', { has: page.locator(`a.id[href="/sessions/${session}"]`) });
const ids = (page) => page.locator('.sessions a.id').allTextContents();
const words = (page) => page.locator('.sessions tbody .health').allTextContents();
const until = async (what, holds) => {
  const end = Date.now() + 15000;
  for (let seen; ;) {
    seen = await holds();
    if (seen) return seen;
    assert.ok(Date.now() < end, `${what}: ${seen}`);
  }
};

onPage('a change of health shows at once, and is announced', {}, async (page) => {
  await monitor.report('fresh', ...lives.progressing(1));
  await row(page, 'fresh').locator('.health.progressing').waitFor();
  const request = { kind: 'evidence', call_id: 'r' };
  await monitor.report('fresh', { ...request, state: 'reading', done: 41216, total: 61440, left_ms: 118000 });
  await row(page, 'fresh').getByText('reading 41,216 / 61,440, ~2 min').waitFor();
  await monitor.report('fresh', { ...request, state: 'over' }, ...beats(8, 'reflection', 9));
  await row(page, 'fresh').locator('.health.stuck').waitFor();
  assert.match(await row(page, 'fresh').textContent(), /its loop went round \d+ times/);
  await page.locator('#said', { hasText: 'fresh is stuck: its loop' }).waitFor({ state: 'attached' });
  assert.match(await page.title(), /^\(\d+\) Watchdog$/);
});

onPage('the worst stand first', {}, async (page) => {
  const shown = await words(page);
  const order = ['stuck', 'looping', 'blocked', 'unknown', 'starting', 'progressing'];
  const places = shown.map((word) => order.indexOf(word)).filter((at) => at >= 0);
  assert.deepEqual(places, [...places].sort());
  assert.equal(shown[0], 'stuck');
});

onPage('healths filter, and the address keeps them', {}, async (page) => {
  const chip = page.locator('.chips button[data-health=looping]');
  assert.equal(await chip.textContent(), 'looping3');
  await chip.click();
  assert.equal(await chip.getAttribute('aria-pressed'), 'true');
  assert.deepEqual(await words(page), ['looping', 'looping', 'looping']);
  await page.locator('.chips button[data-health=blocked]').click();
  assert.equal(new URL(page.url()).search, '?health=looping,blocked');
  await page.reload();
  await live(page);
  await until('six', async () => (await words(page)).length === 6);
  await page.getByRole('button', { name: 'Clear filters' }).click();
  assert.equal(new URL(page.url()).search, '');
  assert.ok((await words(page)).length > 6);
});

onPage('lifecycle, agent and text filter together', { path: '/?lifecycle=completed' }, async (page) => {
  await until('completed', async () => new Set(await words(page)).size === 1);
  assert.equal((await words(page))[0], 'completed');
  await page.getByLabel('Lifecycle').selectOption('open');
  await page.getByLabel('Agent').selectOption('coder');
  await page.getByRole('searchbox').fill('MANUAL');
  const shown = await page.locator('.sessions tbody tr:not(.gap)').allTextContents();
  assert.ok(shown.length > 0);
  for (const text of shown) assert.match(text, /manual.*coder/s);
  await page.getByRole('searchbox').fill('no such text');
  await page.getByText('No session matches these filters.').waitFor();
  assert.equal(new URL(page.url()).search, '?q=no+such+text&lifecycle=open&agent=coder');
});

onPage('every column sorts both ways', {}, async (page) => {
  for (const name of ['Session', 'Doing', 'Iteration', 'Changes', 'Last change', 'Heartbeat']) {
    const head = page.locator('thead th', { has: page.getByRole('button', { name, exact: true }) });
    await head.getByRole('button').click();
    assert.equal(await head.getAttribute('aria-sort'), 'ascending');
    const first = (await ids(page))[0];
    await head.getByRole('button').click();
    assert.equal(await head.getAttribute('aria-sort'), 'descending');
    assert.notEqual((await ids(page))[0], first, name);
  }
});

onPage('children stand under their parents', { path: '/?q=incident-009' }, async (page) => {
  const child = row(page, 'release-010');
  assert.match(await child.textContent(), /child of incident-009/);
  await page.getByLabel('Families together').check();
  await page.locator('tr[data-depth="1"]').first().waitFor();
  const shown = await ids(page);
  assert.equal(shown.indexOf('release-010'), shown.indexOf('incident-009') + 1);
  assert.match(await row(page, 'incident-009').textContent(), /1 child/);
});

onPage('everything goes by keyboard', {}, async (page) => {
  await page.keyboard.press('/');
  await page.keyboard.type('flaky');
  await until('found', async () => (await ids(page)).every((id) => id.startsWith('parser')));
  await page.keyboard.press('Tab');
  await page.keyboard.press('j');  // in a select it chooses, so out of there first
  await page.locator('.sessions').focus();
  const shown = await ids(page);
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  for (const [key, id] of [['j', shown[0]], ['ArrowDown', shown[1]], ['j', shown[2]], ['k', shown[1]], ['ArrowUp', shown[0]]]) {
    await page.keyboard.press(key);
    assert.equal(await focused(), id);
  }
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/sessions/${shown[1]}`);
  await live(page);
  await page.keyboard.press('Escape');
  await page.waitForURL('**/?q=flaky');
  await until('where it was', async () => (await focused()) === shown[1]);
  await page.keyboard.press('Escape');
  await until('all', async () => (await ids(page)).length > shown.length);
});

onPage('paused, nothing moves; resumed, all of it is there', {}, async (page) => {
  await page.keyboard.press('p');
  await page.locator('#live.paused', { hasText: 'Paused since' }).waitFor();
  const shown = await page.locator('main').innerText();
  await monitor.report('later', change('begun'));
  await page.waitForResponse(() => true, { timeout: 1500 }).catch(() => {});
  assert.equal(await page.locator('main').innerText(), shown);
  await page.getByRole('button', { name: 'Resume' }).click();
  await row(page, 'later').waitFor();
});

onPage('a wrong clock of the browser changes no age', {}, async (page) => {
  await page.addInitScript(() => {
    const RealDate = Date;
    globalThis.Date = class extends RealDate {
      constructor(...given) { super(...(given.length ? given : [RealDate.now() + 36e5 * 50])); }
      static now() { return RealDate.now() + 36e5 * 50; }
    };
  });
  await page.goto(monitor.url);
  await live(page);
  await monitor.report('clocked', change('begun'));
  await row(page, 'clocked').getByText(/^[0-5] s ago$/).first().waitFor();
  await page.goto(`${monitor.url}/sessions/clocked`);
  await live(page);
  await page.locator('.changes time', { hasText: /^\d+ s ago$/ }).first().waitFor();
});

test('a monitor that is killed is missed, and met again', async () => {
  const mortal = await Monitor.start();
  await mortal.report('s', change('begun'));
  const page = await open(browser, mortal.url);
  await live(page);
  await row(page, 's').waitFor();
  await mortal.kill();
  await page.locator('#live.lost', { hasText: /Disconnected since .* \(\d+ s ago\)/ }).waitFor();
  await row(page, 's').waitFor();  // what is known stays
  await mortal.serve();
  await mortal.report('s', ...beats(8, 'reflection'));
  await live(page);
  await row(page, 's').locator('.health.stuck').waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
  await mortal.end();
});

test('without scripts it is a page to read', async () => {
  const page = await open(browser, monitor.url, { javaScriptEnabled: false });
  const text = await page.locator('main').innerText();
  assert.match(text, /5\d sessions, \d+ in trouble/);
  assert.match(text, /its loop went round 8 times/);
  assert.equal(await page.locator('noscript meta[http-equiv=refresh]').count(), 1);
  await page.getByRole('link', { name: 'release-004', exact: true }).click();
  await page.waitForURL('**/sessions/release-004');
  assert.match(await page.locator('main').innerText(), /stuck.*Evidence.*first pass of its loop.*Newest events.*plan_generated/s);
  await page.context().close();
});

for (const colorScheme of ['light', 'dark']) {
  onPage(`axe-core finds nothing serious in ${colorScheme}`, { colorScheme }, async (page) => {
    const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map(Number));
    assert.equal(paper.every((part) => part > 128), colorScheme === 'light');
    assert.deepEqual(await barriers(page), []);
    await page.keyboard.press('?');
    assert.deepEqual(await barriers(page), []);
    await page.keyboard.press('Escape');
    await page.setViewportSize({ width: 390, height: 844 });
    assert.deepEqual(await barriers(page), []);
  });
}

onPage('a phone scrolls in one direction only', { path: '/?q=long', viewport: { width: 390, height: 844 } }, async (page) => {
  await monitor.make('p'.repeat(128), { agent: 'a'.repeat(200), task: `long ${'w'.repeat(400)}` });
  await monitor.report('p'.repeat(128), change('w'.repeat(200)));
  await page.locator('.id', { hasText: 'ppp' }).waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.goto(`${monitor.url}/sessions/${'p'.repeat(128)}`);
  await live(page);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});
