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

const row = (page, session) => page.locator('.sessions tbody tr:not(.gap, .head)', { has: page.locator(`a.id[href="/sessions/${session}"]`) });
const ids = (page) => page.locator('.sessions a.id').evaluateAll((links) => links.map(({ pathname }) => decodeURIComponent(pathname.split('/').at(-1))));
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
  assert.match(await row(page, 'fresh').textContent(), /\d+ iterations without a state change/);
  await page.locator('#said', { hasText: 'fresh: stuck: ' }).waitFor({ state: 'attached' });
});

test('notifications are off until somebody turns them on, and show only what is not seen', async () => {
  // A browser without a screen asks nobody and shows nothing.
  const page = await open(browser, 'about:blank');
  await page.addInitScript(() => {
    globalThis.shown = [];
    globalThis.Notification = class {
      static permission = 'default';
      static async requestPermission() { return (this.permission = 'granted'); }
      constructor(title, options) { globalThis.shown.push({ title, ...options }); }
      close() {}
    };
  });
  await page.goto(monitor.url);
  await live(page);
  const failing = async (session) => {
    await monitor.report(session, ...lives.progressing(1), { kind: 'end', outcome: 'failed', reason: 'error', error: 'disk is full' });
    await row(page, session).locator('.health.failed').waitFor();
  };
  const shown = () => page.evaluate(() => globalThis.shown);
  const button = page.getByRole('button', { name: /^Notifications/ });
  assert.equal(await button.textContent(), 'Notifications off');
  assert.equal(await button.getAttribute('aria-pressed'), 'false');
  await failing('unwanted');
  await button.click();
  await page.locator('#notify[aria-pressed=true]', { hasText: 'Notifications on' }).waitFor();
  await failing('seen');
  assert.deepEqual(await shown(), []);
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { get: () => true }));
  await failing('hidden');
  const [one] = await until('it is shown', async () => (await shown()).length > 0 && shown());
  assert.equal(one.title, 'hidden: failed');
  assert.match(one.body, /Disk is full/);
  await button.click();
  await failing('unwanted-again');
  assert.equal((await shown()).length, 1);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

onPage('sessions that need a person come first, and are counted everywhere', {}, async (page) => {
  const shown = await words(page);
  const order = ['stuck', 'looping', 'failed', 'needs input', 'waiting', 'unknown', 'starting', 'progressing', 'completed'];
  const places = shown.map((word) => order.indexOf(word)).filter((at) => at >= 0);
  assert.deepEqual(places, [...places].sort((a, b) => a - b));
  const { attention: { needs_you: needed }, states } = await monitor.ask('/api/autonomous/summary');
  assert.equal(needed, states.stuck + states.looping + states.failed + states.needs_input);
  assert.equal(await page.locator('h1').textContent(), `${needed} sessions need you`);
  assert.equal(await page.title(), `(${needed}) Watchdog`);
  assert.match(await page.locator('link[rel=icon]').getAttribute('href'), new RegExp(`/count-${needed}.svg$`));
  assert.equal(await page.locator('.chips [data-attention=needs_you]').textContent(), `Needs you${needed}`);
  const { sessions } = await monitor.ask('/api/autonomous/sessions?sort=attention&limit=1000');
  const seen = (await words(page)).map((word) => word.replace(' ', '_'));
  assert.deepEqual(seen, sessions.map(({ state }) => state).slice(0, seen.length), 'the page sorts as the monitor does');
  await page.locator('.chips [data-attention=needs_you]').click();
  assert.equal(new URL(page.url()).search, '?attention=needs_you');
  await page.locator(`.sessions[aria-rowcount="${needed + 2}"]`).waitFor();
});

onPage('a row has its title, and what it asks under the reason', { path: '/?q=0f8fad5b' }, async (page) => {
  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  await monitor.make(id, { agent: 'claude-code', labels: { cwd: '/home/me/shop' } });
  await monitor.report(id, { kind: 'user_input', text: 'Split the checkout module\nand keep the tests green' }, change('planned'),
                       { kind: 'message', name: 'assistant', text: 'The old module has no users left.' },
                       { kind: 'wait', waiting_for: 'approval', text: 'May I delete the old module?' });
  const one = row(page, id);
  await one.locator('.health.needs_input').waitFor();
  assert.equal(await one.locator('.id').textContent(), 'Split the checkout module');
  assert.match(await one.locator('th').textContent(), /claude-code · shop · 0f8fad5b/);
  assert.match(await one.locator('.why').textContent(), /May I delete the old module\?/);
  assert.equal(await one.locator('.message').textContent(), 'The old module has no users left.');
});

onPage('a wait with an end says when that is here and how far away', { path: '/?q=limited' }, async (page) => {
  const end = Math.ceil(Date.now() / 60000) * 60000 + 134 * 60000;
  await monitor.report('limited', change('built'), { kind: 'wait', waiting_for: 'quota', provider: 'anthropic', until_ms: end, text: 'used up' });
  const why = row(page, 'limited').locator('.why');
  await why.waitFor();
  const here = await page.evaluate((time) => new Intl.DateTimeFormat(undefined, { timeStyle: 'short' }).format(time), end);
  const said = await why.textContent();
  assert.ok(said.startsWith('Waits for quota of anthropic until ') && said.includes(here), said);
  assert.match(said, /\(in 2 h 1[345] min\): used up$/);
});

onPage('a reason of two lines is not cut at 1280 px', { path: '/?q=wordy' }, async (page) => {
  const text = 'the server of the staging cluster asks for a password again, which nobody but its owner may give, and so the deploy waits';
  await monitor.report('wordy', change('built'), { kind: 'wait', waiting_for: 'approval', text });
  const why = row(page, 'wordy').locator('.why');
  await why.waitFor();
  assert.ok(await why.evaluate((node) => node.scrollHeight <= node.clientHeight + 1), await why.textContent());
});

onPage('the word of no state is cut at any width', { path: '/?sort=session' }, async (page) => {
  const all = ['dead', 'stuck', 'looping', 'silent', 'failed', 'needs input', 'incomplete', 'your turn', 'suspect', 'waiting',
               'slow', 'unknown', 'starting', 'progressing', 'idle', 'cancelled', 'completed'];
  for (const width of [390, 700, 1000, 1200, 1280, 1620, 1920, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    const cut = await page.locator('.sessions tbody .health').first().evaluate((shown, all) => {
      const word = [...shown.childNodes].filter(({ textContent }) => textContent.trim()).at(-1);
      const before = word.textContent;
      const wide = all.filter((text) => { word.textContent = text; return shown.scrollWidth > shown.clientWidth; });
      word.textContent = before;
      return wide;
    }, all);
    assert.deepEqual(cut, [], `at ${width} px`);
  }
});

onPage('no figure and no heading is cut on a wide screen', { path: '/?sort=session' }, async (page) => {
  const figures = ['106.9K · 12.04', '59 min ago', '100,000', '100,000', '59 min ago'];
  for (const width of [1620, 1920, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    const cut = await page.locator('.sessions').evaluate((table, figures) => {
      const cells = [...table.querySelector('tbody tr:not(.gap, .head)').children].slice(5);
      const room = (node) => node.scrollWidth <= node.clientWidth;
      const wide = figures.filter((text, at) => { cells[at].textContent = text; return !room(cells[at]); });
      return [...wide, ...[...table.querySelectorAll('thead button')].filter((head) => !room(head)).map((head) => head.textContent)];
    }, figures);
    assert.deepEqual(cut, [], `at ${width} px`);
  }
});

onPage('each group has a heading at the left, with its count', { viewport: { width: 1280, height: 3600 } }, async (page) => {
  const rows = page.locator('.sessions tbody tr:not(.gap)');
  const shown = await rows.evaluateAll((all) => all.map((row) => [row.className, row.className.startsWith('head') ? row.textContent : null]));
  const { sessions } = await monitor.ask('/api/autonomous/sessions?limit=1000');
  const count = (word) => sessions.filter(({ attention }) => attention === word).length;
  const names = { needs_you: 'Needs you', ready: 'Your turn', watch: 'Watch', working: 'Working', resting: 'Resting' };
  const headings = shown.filter(([, text]) => text !== null);
  assert.deepEqual(headings.map(([, text]) => text), Object.keys(names).filter(count).map((word) => `${names[word]} · ${count(word)}`));
  for (const [at, [look]] of shown.entries())
    if (look.startsWith('head ')) assert.equal(shown[at + 1][0], look.replace('head ', 'row-'), 'its sessions follow it');
  const [head, name] = [rows.first(), page.locator('.sessions a.id').first()];
  const width = (node) => node.evaluate((one) => one.getBoundingClientRect().width);
  assert.ok(await width(head.locator('th')) >= await width(page.locator('.sessions')) - 2, 'it is as wide as the list');
  const left = (node) => node.evaluate((one) => { const all = document.createRange(); all.selectNodeContents(one); return all.getBoundingClientRect().left; });
  assert.equal(await left(head.locator('th')), await left(name), 'where the names of sessions begin');
  await page.getByRole('button', { name: 'Session', exact: true }).click();
  assert.equal(await page.locator('.sessions tbody tr.head').count(), 0, 'not in another order');
});

test('an acknowledged session leaves those that need somebody, and comes back with a new trouble', async () => {
  const page = await open(browser, monitor.url);
  await live(page);
  const session = 'looked-after';
  await monitor.report(session, ...lives.stuck());
  await until('it needs somebody', async () => (await row(page, session).getAttribute('class')) === 'row-needs_you');
  const needed = await page.locator('h1').textContent();
  const button = row(page, session).getByRole('button', { name: 'Acknowledge' });
  await button.waitFor();
  await row(page, session).locator('a.id').focus();
  await page.keyboard.press('a');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Token').fill(monitor.token);
  await dialog.getByRole('button', { name: 'Log in' }).click();
  await page.locator('#account', { hasText: 'Log out' }).waitFor();  // the bar knows of the login, too
  await dialog.getByRole('button', { name: 'Acknowledge' }).click();
  await page.getByText('It is acknowledged.').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await until('it is watched', async () => (await row(page, session).getAttribute('class')) === 'row-watch');
  assert.equal(parseInt(await page.locator('h1').textContent(), 10), parseInt(needed, 10) - 1);
  await button.waitFor({ state: 'hidden' });
  await monitor.report(session, change('repaired', { again: 1 }), change('repaired', { again: 2 }));
  await row(page, session).locator('.health.progressing').waitFor();
  await monitor.report(session, ...beats(8, 'reflection', 9));
  await until('it needs somebody again', async () => (await row(page, session).getAttribute('class')) === 'row-needs_you');
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a row is cancelled by its button or its key, once a person said so', async () => {
  const page = await open(browser, `${monitor.url}/?q=to-cancel#token=${monitor.token}`);
  await live(page);
  for (const id of ['to-cancel-1', 'to-cancel-2']) await monitor.report(id, ...lives.stuck());
  await monitor.report('to-cancel-3', ...lives.completed(1));
  const buttons = page.locator('.sessions .stop');
  await row(page, 'to-cancel-3').hover();
  assert.equal(await buttons.isVisible(), false, 'what ended is not cancelled');
  await row(page, 'to-cancel-1').hover();
  const button = row(page, 'to-cancel-1').getByRole('button', { name: 'Cancel' });
  await button.waitFor();
  assert.equal(await buttons.count(), 1, 'rows without the pointer have no button more');
  const other = await row(page, 'to-cancel-1').getByRole('button', { name: 'Acknowledge' }).boundingBox();  // waits for the alert
  const stop = await button.boundingBox();
  assert.ok(stop.x + stop.width < other.x, 'they are beside each other');
  assert.deepEqual(await barriers(page), []);
  await button.click();
  const dialog = page.getByRole('dialog', { name: 'Cancel session to-cancel-1?' });
  await dialog.getByRole('button', { name: 'Back' }).click();
  await row(page, 'to-cancel-2').locator('a.id').focus();
  await row(page, 'to-cancel-2').getByRole('button', { name: 'Cancel' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('cancel the session').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('c');
  await page.getByRole('dialog', { name: 'Cancel session to-cancel-2?' }).getByRole('button', { name: 'Cancel the session' }).click();
  await page.getByRole('dialog').getByText(/asked|cancel/i).first().waitFor();
  await until('it is asked to stop', async () => (await monitor.ask('/api/autonomous/sessions?q=to-cancel-2')).sessions[0].cancelling);
  assert.equal((await monitor.ask('/api/autonomous/sessions?q=to-cancel-1')).sessions[0].cancelling, false, 'Back cancels nothing');
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

onPage('a row shows its tokens and its cost', { path: '/?q=costly', viewport: { width: 1920, height: 900 } }, async (page) => {
  await monitor.report('costly', change('begun'), { kind: 'budget', name: 'update', tokens: 81000, max_tokens: 200000, cost: 1.2, max_cost: 5 });
  await row(page, 'costly').locator('[data-label=tokens]', { hasText: '81K · 1.20' }).waitFor();
  const { sessions: [{ tokens, cost }] } = await monitor.ask('/api/autonomous/sessions?q=costly');
  assert.deepEqual([tokens, cost], [81000, 1.2]);
});

onPage('on a phone filters open when they are wanted', { viewport: { width: 390, height: 844 } }, async (page) => {
  assert.equal(await page.getByLabel('Agent').isVisible(), false);
  await page.getByRole('button', { name: 'Filters' }).click();
  await page.getByLabel('Agent').selectOption('coder');
  await until('only those', async () => (await page.locator('.sessions tbody small').allTextContents()).length > 0);
  assert.equal(new URL(page.url()).search, '?agent=coder');
});

onPage('states filter, and the address keeps them', {}, async (page) => {
  const chip = page.locator('.chips button[data-state=looping]');
  assert.equal(await chip.textContent(), 'looping3');
  await chip.click();
  assert.equal(await chip.getAttribute('aria-pressed'), 'true');
  assert.deepEqual(await words(page), ['looping', 'looping', 'looping']);
  await page.locator('.chips button[data-state=needs_input]').click();
  assert.equal(new URL(page.url()).search, '?state=looping,needs_input');
  await page.reload();
  await live(page);
  await until('eight', async () => (await words(page)).length === 8);
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
  const shown = await page.locator('.sessions tbody tr:not(.gap, .head)').allTextContents();
  assert.ok(shown.length > 0);
  for (const text of shown) assert.match(text, /manual.*coder/s);
  await page.getByRole('searchbox').fill('no such text');
  await page.getByText('No session matches these filters.').waitFor();
  assert.equal(new URL(page.url()).search, '?q=no+such+text&lifecycle=open&agent=coder');
});

onPage('every column sorts both ways', { viewport: { width: 1700, height: 900 } }, async (page) => {
  for (const [session, tokens] of [['saving', 9], ['lavish', 9000]])
    await monitor.report(session, change('begun'), { kind: 'budget', name: 'update', tokens, max_tokens: 10000 });
  for (const name of ['Session', 'Doing', 'Tokens · cost', 'Iteration', 'Changes', 'Last change', 'Heartbeat']) {
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
  assert.match(await child.textContent(), /child of /);
  assert.equal(await child.locator('small a').getAttribute('href'), '/sessions/incident-009');
  await page.getByLabel('Group by parent').check();
  await page.locator('tr[data-depth="1"]').first().waitFor();
  const shown = await ids(page);
  assert.equal(shown.indexOf('release-010'), shown.indexOf('incident-009') + 1);
  assert.match(await row(page, 'incident-009').textContent(), /1 child/);
});

onPage('a session above a stuck one names it', { path: '/?q=lineage' }, async (page) => {
  const parents = { 'lineage-top': undefined, 'lineage-middle': 'lineage-top', 'lineage-stuck': 'lineage-middle' };
  for (const [id, parentSessionId] of Object.entries(parents)) {
    await monitor.make(id, { parentSessionId });
    await monitor.report(id, ...(id === 'lineage-stuck' ? lives.stuck() : lives.progressing(2)));
  }
  for (const id of ['lineage-top', 'lineage-middle']) await row(page, id).locator('.message.stuck', { hasText: 'Below it: lineage-stuck (stuck)' }).waitFor();
});

onPage('everything goes by keyboard', {}, async (page) => {
  await page.keyboard.press('/');
  await page.keyboard.type('flaky');
  await until('found', async () => (await ids(page)).every((id) => id.startsWith('parser')));
  await page.keyboard.press('Tab');
  await page.keyboard.press('j');  // in a select it chooses, so out of there first
  await page.locator('.sessions').focus();
  const shown = await ids(page);
  const focused = () => page.evaluate(() => decodeURIComponent(document.activeElement.pathname?.split('/').at(-1) ?? ''));
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

onPage('frozen, nothing moves; resumed, all of it is there', {}, async (page) => {
  await page.keyboard.press('p');
  await page.locator('#live.paused', { hasText: 'Frozen since' }).waitFor();
  const shown = await page.locator('main').innerText();
  await monitor.report('later', change('begun'));
  await page.waitForResponse(() => true, { timeout: 1500 }).catch(() => {});
  assert.equal(await page.locator('main').innerText(), shown);
  await page.getByRole('button', { name: 'Resume' }).click();
  await row(page, 'later').waitFor();
});

onPage('a wrong clock of the browser changes no age', { viewport: { width: 1800, height: 800 } }, async (page) => {
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

test('a monitor that is killed is missed, and met again', async (t) => {
  const mortal = await Monitor.start();
  t.after(() => mortal.end());
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
});

test('without scripts it is a page to read', async () => {
  const page = await open(browser, monitor.url, { javaScriptEnabled: false });
  const text = await page.locator('main').innerText();
  assert.match(text, /\d+ sessions need you\s+\d\d sessions/);
  assert.match(text, /8 iterations without a state change/);
  assert.match(text, /Times are in the monitor's time zone, UTC[+-]\d{4}\./);
  assert.equal(await page.locator('noscript meta[http-equiv=refresh]').count(), 1);
  await page.locator('a[href="/sessions/release-004"]').first().click();
  await page.waitForURL('**/sessions/release-004');
  assert.match(await page.locator('main').innerText(), /stuck.*Evidence.*first iteration without.*Newest events.*plan_generated/s);
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
  await page.locator('.id', { hasText: 'long www' }).waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.goto(`${monitor.url}/sessions/${'p'.repeat(128)}`);
  await live(page);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

test('says which parts of all sessions the monitor judges, and what is wrong with it', async () => {
  const page = await open(browser, 'about:blank');
  const states = [
    { json: { status: 'ready', shards: 85, held: '0-84', monitors: 3, lease: 'held', leaseAgeMs: 100 } },
    { json: { status: 'ready', shards: 85, held: '0-84', monitors: 3, lease: 'late', leaseAgeMs: 11000 } },
    { status: 503, json: { error: { code: 'unavailable', message: 'database postgresql://db/w: the server closed the connection' } } },
  ];
  let now = states[0];
  await page.route('**/readyz', (route) => route.fulfill(now));
  const shows = async (state) => {
    now = state;
    await page.goto(monitor.url);
    await live(page);
  };
  await shows(states[0]);
  await page.getByText('This monitor judges 85 of 256 parts of all sessions: 0-84. 3 monitors share the database.').waitFor();
  assert.ok(await page.locator('#monitor-trouble').isHidden());
  assert.deepEqual(await barriers(page), []);
  await shows(states[1]);
  await page.locator('#monitor-trouble', { hasText: 'cannot renew its leases in time' }).waitFor();
  await shows(states[2]);
  await page.locator('#monitor-trouble', { hasText: 'the server closed the connection' }).waitFor();
  assert.ok(await page.locator('#monitor-share').isHidden());
  assert.deepEqual(page.faults, []);
  await page.context().close();
});
