// What is drawn: calls on a time axis, states over the last minutes and the last day. And the pages for
// alerts, for the last day, and for a monitor that nobody has reported to.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { barriers, launch, live, open } from './browser.mjs';
import { Monitor, call, change, populate, result } from './monitor.mjs';

let browser;
let monitor;
before(async () => {
  browser = await launch();
  monitor = await Monitor.start();
  await populate(monitor, 20);
});
after(async () => {
  await browser.close();
  await monitor.end();
});

function onPage(name, path, run, options = {}) {
  test(name, async (t) => {
    const page = await open(browser, `${monitor.url}${path}#token=${monitor.token}`, options);
    await live(page);
    await run(page, t);
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await page.context().close();
  });
}

test('calls, requests, turns and waits become bars with their outcomes', async () => {
  const page = await open(browser, monitor.url);
  const events = [
    { seq: 1, at_ms: 10, kind: 'turn', name: 'turn_start', call_id: 't' },
    { seq: 2, at_ms: 11, kind: 'tool_call', name: 'read', call_id: 'a', turn_id: 't', args: { p: 1 } },
    { seq: 3, at_ms: 12, kind: 'tool_call', name: 'read', call_id: 'b', turn_id: 't' },
    { seq: 4, at_ms: 20, kind: 'error', name: 'read', call_id: 'b', text: 'no file' },
    { seq: 5, at_ms: 30, kind: 'tool_result', name: 'read', call_id: 'a' },
    { seq: 6, at_ms: 31, kind: 'tool_call', name: 'shell' },
    { seq: 7, at_ms: 32, kind: 'evidence', call_id: 'r', state: 'reading' },
    { seq: 8, at_ms: 40, kind: 'evidence', call_id: 'r', state: 'over' },
    { seq: 9, at_ms: 41, kind: 'wait', waiting_for: 'approval', text: 'May I?' },
    { seq: 10, at_ms: 50, kind: 'user_input', text: 'yes' },
    { seq: 11, at_ms: 60, kind: 'tool_timeout', name: 'shell' },
    { seq: 12, at_ms: 61, kind: 'tool_call', name: 'late', call_id: 'c', turn_id: 't' },
    { seq: 13, at_ms: 70, kind: 'turn', name: 'turn_end', call_id: 't' },
    { seq: 14, at_ms: 80, kind: 'end', outcome: 'failed' }];
  const found = await page.evaluate(async (events) => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { inLanes, reduced, spansOf } = await import(`${folder}spans.js`);
    const spans = spansOf(events.map(reduced));
    const lanes = inLanes(spans.calls, 100);
    const brief = (bars) => bars.map(({ name, begin, end, outcome, lane }) => [name, begin, end, outcome, lane ?? null]);
    return { lanes, calls: brief(spans.calls), requests: brief(spans.requests), turns: brief(spans.turns), waits: brief(spans.waits), end: spans.end };
  }, events);
  assert.deepEqual(found.calls, [['read', 11, 30, 'ok', 0], ['read', 12, 20, 'failed', 1], ['shell', 31, 60, 'timed out', 0], ['late', 61, 70, 'lost', 0]]);
  assert.equal(found.lanes, 2, 'calls at the same time are below each other');
  assert.deepEqual(found.requests, [['reading', 32, 40, 'ok', null]]);
  assert.deepEqual(found.turns, [['t', 10, 70, 'ok', null]]);
  assert.deepEqual(found.waits, [['waits for approval', 41, 50, 'waiting', null]]);
  assert.deepEqual(found.end, { at: 80, outcome: 'failed' });
  await page.context().close();
});

test('a call that waits for a person does not run, and what waited is seen afterwards', async () => {
  const page = await open(browser, monitor.url);
  const asked = [
    { seq: 1, at_ms: 10, kind: 'tool_call', name: 'build', call_id: 'a' }, { seq: 2, at_ms: 11, kind: 'tool_call', name: 'AskUserQuestion', call_id: 'b' },
    { seq: 3, at_ms: 12, kind: 'wait', waiting_for: 'input', call_id: 'b', text: 'Which?' }, { seq: 4, at_ms: 13, kind: 'wait', waiting_for: 'input', call_id: 'b', text: 'Which?' }];
  const answered = [...asked, { seq: 5, at_ms: 50, kind: 'tool_result', name: 'AskUserQuestion', call_id: 'b' }, { seq: 6, at_ms: 60, kind: 'wait', waiting_for: 'quota' }];
  const found = await page.evaluate(async (lists) => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { reduced, spansOf } = await import(`${folder}spans.js`);
    return lists.map((events) => {
      const { calls, waits } = spansOf(events.map(reduced));
      return { calls: calls.map(({ name, outcome, waits: parts }) => [name, outcome, parts.map(({ begin, end }) => [begin, end])]), waits: waits.map(({ look, begin, end }) => [look, begin, end]) };
    });
  }, [asked, answered]);
  assert.deepEqual(found[0], { calls: [['build', 'running', []], ['AskUserQuestion', 'waiting', [[12, null]]]], waits: [['needs', 12, null]] });
  assert.deepEqual(found[1], { calls: [['build', 'running', []], ['AskUserQuestion', 'ok', [[12, 50]]]], waits: [['needs', 12, 50], ['blocked', 60, null]] });
  await page.context().close();
});

test('a wait for a person keeps its look when it is over, and is summed', async () => {
  const page = await open(browser, monitor.url);
  const found = await page.evaluate(async () => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { History, askWaits } = await import(`${folder}history.js`);
    const { lookOfChange } = await import(`${folder}health.js`);
    const history = new History();
    const change = (at, from, health) => ({ sessionId: 'a', at, from, health, pattern: null });
    history.fill({ since: 0, changes: [change(10, 'blocked', 'progressing'), change(20, 'progressing', 'blocked'), change(30, 'blocked', 'progressing'),
                                       change(40, 'progressing', 'blocked'), change(60, 'blocked', 'progressing'), change(80, 'progressing', 'blocked')] });
    const row = { sessionId: 'a', createdAt: 0, endedAt: null, health: 'blocked', state: 'needs_input' };
    const looks = () => history.pieces(row, 0, 100).map(({ look }) => look);
    const before = looks();
    const transitions = [[2, 'Waits for login'], [20, 'Waits for quota of input until 2026-01-01 10:00 UTC'], [40, 'Waits for approval: quota']].map(([at, reason]) => ({ at, health: 'blocked', reason }));
    const unknown = [await askWaits(history, [row], null, 0), await askWaits(history, [row], async () => ({ transitions, next: null }), 1)];
    return { before, unknown, after: looks(), vague: history.isVague(row), sum: history.waitsOver([row], 5, 100),
             plain: [lookOfChange({ health: 'blocked', reason: 'Waits for inputs' }), lookOfChange({ health: 'blocked', pattern: 'F6' }), lookOfChange({ health: 'stuck' })] };
  });
  assert.deepEqual(found.before, ['blocked', 'progressing', 'blocked', 'progressing', 'blocked', 'progressing', 'needs_input']);
  assert.deepEqual(found.unknown, [1, 0]);
  assert.deepEqual(found.after, ['needs_input', 'progressing', 'waiting', 'progressing', 'needs_input', 'progressing', 'needs_input']);
  assert.equal(found.vague, false, 'it is asked once');
  assert.deepEqual(found.sum, { ms: 45, times: 3, sessions: 1 });
  assert.deepEqual(found.plain, ['waiting', 'needs_input', 'stuck']);
  await page.context().close();
});

test('a short bar has its name beside it where there is room', async () => {
  const page = await open(browser, monitor.url);
  const found = await page.evaluate(async () => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { namesBeside } = await import(`${folder}spans.js`);
    const bar = (name, left, right, top = 0) => ({ name, left, right, top });
    const places = [bar('read', 0, 4), bar('crowded', 100, 104), bar(undefined, 130, 300), bar('last', 460, 464), bar('below', 0, 4, 15)];
    return namesBeside(places, 500, (text) => 6 * text.length).map(({ name }) => name).sort();
  });
  assert.deepEqual(found, ['below', 'last', 'read']);
  await page.context().close();
});

test('texts of several lines in an event keep their lines, wherever they stand', async () => {
  const page = await open(browser, monitor.url);
  const text = await page.evaluate(async () => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { readable } = await import(`${folder}events.js`);
    return readable({ seq: 1, text: 'one\ntwo', args: { command: 'cd /src\nmake', list: ['a', 'b\nc'] } });
  });
  assert.equal(text, `{
  "seq": 1,
  "text": "(below)",
  "args": {
    "command": "(below)",
    "list": [
      "a",
      "(below)"
    ]
  }
}

text:
one
two

args.command:
cd /src
make

args.list[1]:
b
c`);
  await page.context().close();
});

test('a session is counted where it was, from its beginning to its end', async () => {
  const page = await open(browser, monitor.url);
  const counts = await page.evaluate(async () => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { History, countsOver } = await import(`${folder}history.js`);
    const history = new History();
    history.fill({ since: 0, changes: [{ sessionId: 'a', at: 40, from: 'starting', health: 'progressing' }, { sessionId: 'a', at: 80, from: 'progressing', health: 'stuck' }] });
    const rows = [{ sessionId: 'a', createdAt: 20, endedAt: null, health: 'stuck' }, { sessionId: 'b', createdAt: -50, endedAt: 50, health: 'progressing', state: 'completed' },
                  { sessionId: 'gone', createdAt: -90, endedAt: -1, health: 'dead', state: 'failed' }];
    return Object.fromEntries(countsOver(rows, history, 0, 100, 10));
  });
  assert.deepEqual(counts.stuck, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
  assert.equal(counts.dead, undefined);
  assert.deepEqual(counts.progressing, [1, 1, 1, 2, 1, 1, 1, 0, 0, 0]);
  await page.context().close();
});

const calls = (count) => Array.from({ length: count }, (_, at) => [call(['read', 'shell'][at % 2], `c${at}`, { at }),
  at % 9 === 4 ? { kind: 'error', name: ['read', 'shell'][at % 2], call_id: `c${at}`, text: 'exit 1' } : result(['read', 'shell'][at % 2], `c${at}`, `out ${at}`)]).flat();

test('the session page draws its calls, also for the keyboard and as a table', async () => {
  await monitor.make('drawn', { agent: 'coder' });
  await monitor.report('drawn', change('planned'), ...calls(30), call('shell', 'open', { command: 'make' }));
  const page = await open(browser, `${monitor.url}/sessions/drawn`);
  await live(page);
  const section = page.getByRole('region', { name: 'Activity' });
  await section.waitFor();
  await section.locator('canvas[aria-label^="Activity: 31 calls, 27 ok, 3 failed, 1 running"]').waitFor();
  assert.match(await section.locator('.sums').innerText(), /27 calls returned\s+3 calls failed\s+1 call running/);
  const painted = await section.locator('canvas').first().evaluate((canvas) =>
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0));
  assert.ok(painted);
  await section.locator('canvas').first().focus();
  await page.keyboard.press('End');
  await section.locator('.tip', { hasText: /^shell · .* so far · running/ }).waitFor();
  await page.keyboard.press('+');
  await page.keyboard.press('0');
  await page.keyboard.press('Enter');
  await page.locator('.event.tool_call.meant').waitFor();
  await section.getByText('As a table').click();
  await section.locator('tbody tr').nth(30).waitFor();
  assert.equal(await section.locator('tbody tr').count(), 31);
  assert.match(await section.locator('tbody tr').first().innerText(), /call\s+shell\s+.*so far\s+running/);
  assert.deepEqual(await barriers(page), []);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

onPage('a row shows the states of its last half hour', '/?q=release-004', async (page) => {
  const strip = page.locator('.sessions .strip[aria-label*="stuck"]').first();
  await strip.waitFor();
  await strip.hover();
  await page.locator('.sessions .strip[title*="stuck"]').first().waitFor();
  assert.match(await strip.getAttribute('title'), /\d\d:\d\d.* stuck for \d+ s/);
});

test('a session shows those below it, as deep as they go', async () => {
  const parents = { top: undefined, left: 'top', leaf: 'left', right: 'top' };
  for (const [id, parentSessionId] of Object.entries(parents)) {
    await monitor.make(id, { task: `The task of ${id}`, parentSessionId });
    await monitor.report(id, change('begun'));
  }
  const page = await open(browser, `${monitor.url}/sessions/top`);
  await live(page);
  const items = page.getByRole('region', { name: 'Children' }).getByRole('listitem');
  await items.nth(2).waitFor();
  assert.deepEqual(await items.getByRole('link').allTextContents(), ['The task of left', 'The task of leaf', 'The task of right']);
  assert.deepEqual(await items.evaluateAll((all) => all.map((item) => item.dataset.depth ?? null)), [null, '1', null]);
  assert.deepEqual(await barriers(page), []);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('of many sessions below one the newest are shown, also where their parent is not among them', async () => {
  await monitor.make('crowded', {});
  await monitor.make('between', { parentSessionId: 'crowded' });
  for (let at = 0; at < 101; ++at) await monitor.make(`crowd-${at}`, { parentSessionId: 'between' });
  await monitor.report('crowded', change('begun'));
  const page = await open(browser, `${monitor.url}/sessions/crowded`);
  await live(page);
  const children = page.getByRole('region', { name: 'Children' });
  await children.getByText('Only the newest 100 are shown.').waitFor();
  assert.equal(await children.getByRole('link').count(), 100);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

onPage('the last day is drawn, and what went wrong most is named', '/overview', async (page) => {
  await page.locator('.overview .sums .stuck').waitFor();
  assert.match(await page.locator('.wrong').innerText(), /\d+ ×\s+stuck\s+iterations without a state change/);
  const link = page.locator('.wrong li', { hasText: 'stuck' }).first().getByRole('link');
  assert.equal(await link.getAttribute('href'), `/?state=stuck&agent=${await link.textContent()}`);
  await page.getByText('As a table').click();
  await page.locator('.overview tbody tr').nth(23).waitFor();
  assert.equal(await page.locator('.overview tbody tr').count(), 24);
  const oldest = Date.parse((await page.locator('.overview tbody th').last().innerText()).replaceAll('\u202f', ' '));
  assert.ok(Math.abs(Date.now() - oldest - 23 * 3600_000) < 120_000, '24 hours are 24 hours, however young the monitor is');
  await page.getByText(/^The first session began \d+ (s|min) ago\.$/).waitFor();
  const { sessions } = await monitor.ask('/api/autonomous/sessions?state=needs_input');
  const waits = `${sessions.length} ${sessions.length === 1 ? 'wait of 1 session' : `waits of ${sessions.length} sessions`}`;
  assert.match(await page.locator('.waited').innerText(), new RegExp(`^Agents waited \\d+ (s|min) for you\\s+${waits} for an answer`));
  assert.deepEqual(await barriers(page), []);
});

onPage('alerts are acknowledged, and then the session rests', '/alerts', async (page) => {
  const { sessions } = await monitor.ask('/api/autonomous/sessions?state=failed');
  const { title, sessionId } = sessions[0];
  const line = page.locator('.alerts.all li', { has: page.locator(`a[href="/sessions/${sessionId}"]`) });
  assert.equal(await line.getByRole('link').textContent(), title);
  assert.equal(await line.locator('div > small').textContent(), `${sessions[0].agent} · ${sessionId}`, 'equal titles are told apart');
  assert.match(await line.innerText(), /The compiler was killed by signal 9/);
  await page.setViewportSize({ width: 390, height: 844 });
  const boxes = await page.locator('.alerts.all li').evaluateAll((items) => items.map((item) => [...item.children].map((part) => {
    const { left, right, top, bottom } = part.getBoundingClientRect();
    return { left, right, top, bottom };
  }).filter(({ left, right }) => right > left)));
  const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const parts of boxes) assert.ok(!parts.some((a, at) => parts.slice(at + 1).some((b) => overlap(a, b))), 'no part lies on another');
  assert.ok(await page.getByLabel('Only open ones').isVisible());
  await page.setViewportSize({ width: 1280, height: 800 });
  await line.getByRole('button', { name: 'Acknowledge' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Acknowledge' }).click();
  await dialog.getByText('It is acknowledged.').waitFor();
  assert.equal(await dialog.getByText('No more alerts').count(), 0, 'what was asked is gone once it is done');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await line.waitFor({ state: 'detached' });
  const found = await monitor.ask(`/api/autonomous/sessions?q=${sessionId}`);
  assert.deepEqual(found.sessions.map(({ state, attention }) => [state, attention]), [['failed', 'resting']]);
  assert.deepEqual(await barriers(page), []);
});

test('an empty monitor shows six ways in, and four turn green as they are used', async (t) => {
  const model = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('Content-Type', 'application/json').end(JSON.stringify({
      id: 'c', object: 'chat.completion', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello.' } }] })));
  });
  await once(model.listen(0, '127.0.0.1'), 'listening');
  t.after(() => model.close());
  const empty = await Monitor.start({ WATCHDOG_PROXY_UPSTREAM: `http://127.0.0.1:${model.address().port}`, WATCHDOG_PROXY_PORT: '0' });
  t.after(() => empty.end());
  const page = await open(browser, empty.url);
  await live(page);
  const ways = page.locator('.ways');
  await ways.waitFor();
  assert.equal(await ways.locator('li').count(), 6);
  for (const part of ['.bar', '.chips', '.sessions']) assert.equal(await page.locator(part).first().isVisible(), false, part);
  assert.ok((await ways.innerText()).includes(`hooks install --server ${empty.url}`));
  assert.ok((await ways.innerText()).includes(`OPENAI_BASE_URL=${empty.models}/v1`));
  assert.deepEqual(await barriers(page), []);
  const uses = {
    Hooks: () => empty.ask('/api/hooks/claude-code', { hook_event_name: 'SessionStart', session_id: 'hooked', cwd: '/src/shop', source: 'startup' }),
    'Client library': () => empty.report('own', change('begun')),
    'Model proxy': async () => (await fetch(`${empty.models}/s/proxied/v1/chat/completions`, { method: 'POST',
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'Say hello' }] }) })).text(),
    'Wrapped command': () => promisify(execFile)(process.env.WATCHDOG_MONITOR, ['run', '--server', empty.url, '--', 'echo', 'hello'],
      { env: { PATH: process.env.PATH } }),  // this test's own variables are no settings
  };
  let used = 0;
  for (const [name, use] of Object.entries(uses)) {
    await use();
    await ways.locator('li.used', { hasText: name }).waitFor();
    used += 1;
    assert.equal(await ways.locator('li.used').count(), used, name);
    assert.equal(await ways.getByText('works: a session came').count(), used);
  }
  assert.deepEqual(await barriers(page), []);
  assert.ok(await page.locator('.filters').isVisible());
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('counters, prompts and steps become series, each with what is usual for it', async () => {
  const page = await open(browser, monitor.url);
  const beat = (at, counters) => ({ at, kind: 'heartbeat', counters });
  const events = [
    beat(0, { tokens: 0, context: 10 }), { at: 500, kind: 'tool_result' }, beat(1000, { tokens: 10, context: 90 }), { at: 1500, kind: 'tool_result' },
    beat(2000, { tokens: 20, context: 40 }), { at: 2500, kind: 'state_change' }, { at: 2600, kind: 'evidence', done: 50, total: 200 },
    beat(3000, { tokens: 60, context: 50 }), { at: 8500, kind: 'error' }, { at: 9000, kind: 'evidence', done: 150, total: 200 }];
  const found = await page.evaluate(async (events) => {
    const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
    const { seriesOf, thinned } = await import(`${folder}spans.js`);
    const burst = Array.from({ length: 9 }, (_, at) => ({ at: at * 2, kind: 'tool_result', counters: { tokens: 0 } }));
    return { series: seriesOf(events), burst: seriesOf(burst), thin: thinned([[0, 1], [1, 5], [2, 3], [10, 2]], (at) => at / 5) };
  }, events);
  const [tokens, context, prompt, pace] = found.series;
  assert.deepEqual(tokens, { name: 'tokens', unit: '/s', points: [[1000, 10], [2000, 10], [3000, 40]], usual: 10, now: 60 });
  assert.deepEqual([context.name, context.unit, context.points.map(([, value]) => value)], ['context', '', [10, 90, 40, 50]], 'what falls is shown as it is');
  assert.deepEqual([prompt.name, prompt.points], ['prompt read', [[2600, 25], [9000, 75]]]);
  assert.deepEqual([pace.name, pace.points, pace.usual], ['seconds a step', [[1500, 1], [2500, 1], [8500, 6]], 1]);
  assert.deepEqual(found.burst, [], 'nothing is drawn where there is nothing to see');
  assert.deepEqual(found.thin, [[0, 5], [2, 2]], 'of one pixel the highest');
  await page.context().close();
});

test('a browser gets a page where there is nothing, a program an answer', async () => {
  const page = await open(browser, `${monitor.url}/nothing/here`);
  assert.equal(await page.locator('h1').textContent(), 'Page not found');
  await page.context().close();
  const answer = await fetch(`${monitor.url}/nothing/here`, { headers: { Accept: 'application/json' } });
  assert.equal(answer.status, 404);
  assert.equal((await answer.json()).error.code, 'not_found');
});

onPage('on paper there are no controls, and the colours of states stay', '/', async (page) => {
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  for (const part of ['.top', '.chips', '.bar']) assert.equal(await page.locator(part).first().isVisible(), false, part);
  const icon = page.locator('.sessions .health .icon').first();
  assert.equal(await icon.evaluate((node) => getComputedStyle(node).printColorAdjust), 'exact');
  assert.equal(await page.locator('.sessions').evaluate((node) => getComputedStyle(node).backgroundColor), 'rgb(255, 255, 255)');
});

test('a list is printed whole, not only the rows in sight', async (t) => {
  const crowded = await Monitor.start();
  t.after(() => crowded.end());
  await populate(crowded, 120);
  const page = await open(browser, crowded.url);
  await live(page);
  const rows = page.locator('.sessions tbody tr:not(.gap, .head)');
  assert.ok(await rows.count() < 120);
  await page.emulateMedia({ media: 'print' });
  await rows.nth(119).waitFor();
  await page.emulateMedia({ media: 'screen' });
  await rows.nth(119).waitFor({ state: 'detached' });
  await page.context().close();
});

onPage('on a phone the first session is on the upper half of the screen', '/', async (page) => {
  const top = await page.locator('.sessions tbody tr:not(.gap, .head)').first().evaluate((row) => row.getBoundingClientRect().top);
  assert.ok(top < 422, `it begins at ${top} px`);
}, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true });
