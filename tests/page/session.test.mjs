// A session's page in a real browser, and what can be done from it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { barriers, launch, live, open } from './browser.mjs';
import { Monitor, beats, call, change, lives, result } from './monitor.mjs';

let browser;
let monitor;
before(async () => {
  browser = await launch();
  monitor = await Monitor.start();
});
after(async () => {
  await browser.close();
  await monitor.end();
});

/** Runs with the session's page open, and in the end nothing went wrong in it. */
function onSession(name, events, run, { spec = {}, prepare = async () => {}, stranger = false, ...options } = {}) {
  test(name, async (t) => {
    const id = `s${onSession.count = (onSession.count ?? 0) + 1}`;
    await monitor.make(id, spec);
    if (events.length > 0) await monitor.report(id, ...events);
    const page = await open(browser, 'about:blank', options);
    await prepare(page);
    await page.goto(`${monitor.url}/sessions/${id}${stranger ? '' : `#token=${monitor.token}`}`);
    await live(page);
    await run(page, id, t);
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await page.context().close();
  });
}

const many = (count) => Array.from({ length: count }, (_, at) => change(`step_${at}`, { at }));

onSession('says how it is, why, and what proves it', lives.stuck(), async (page) => {
  await page.locator('.now .health.stuck').waitFor();
  assert.match(await page.locator('.reason').textContent(), /^8 iterations without a state change \(limit 5\)$/);
  const evidence = page.getByRole('region', { name: 'Evidence' });
  await evidence.getByRole('link').first().click();
  const event = page.locator('.event.meant');
  await event.waitFor();
  assert.match(await event.textContent(), /heartbeat8 times · iteration 1–8 · reflection.*"kind": "heartbeat"/s);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'SUMMARY');
  assert.match(await page.locator('.timeline .sums').getAttribute('aria-label'), /^Healths over .*stuck.* Now stuck\.$/);
  assert.match(await page.locator('.changes').innerText(), /stuck.*progressing/s);
});

/** A model file that says of each session of `worker`, after 4 calls: 7 of 10, and 3 to 12 more calls. */
function writeModel(file) {
  const features = ['repetition', 'repeats', 'failures', 'recent_failures', 'same_error', 'informative', 'new_arguments',
                    'recent_arguments', 'recent_results', 'recent_messages', 'similar_calls'];
  const all = (value) => features.map(() => value);
  const seen = { runs: 212, unfinished: 150 };
  const agent = { name: 'worker', offset: 0, ...seen, worth: 'shown', auroc: 0.8, auroc_low: 0.7, auroc_high: 0.9,
                  blocks: [{ from: 0, ...seen }] };
  const stage = { ...seen, all_features: true, mean: all(0), scale: all(1), weights: all(0), intercept: 0, agents: [agent],
                  blocks: [{ from: 0, ...seen }], unlikely_from: null };
  const steps = [{ calls: 7, at_risk: 80, longer: 0.5 }, { calls: 16, at_risk: 40, longer: 0 }];
  const lengths = [{ name: 'worker', steps, coverage: Array(6).fill({ runs: 80, inside: 64 }) }];
  writeFileSync(file, JSON.stringify({ version: 2, trained_on: '0', runs: 212, features, stages: [stage, ...Array(6).fill(null)], lengths }));
}

const fourCalls = [1, 2, 3, 4].flatMap((n) => [call('shell', `c${n}`, { command: `step ${n}` }), result('shell', `c${n}`, `found ${n}`)]);

onSession('says what similar sessions did', fourCalls, async (page, id) => {
  const facts = page.locator('.facts');
  assert.equal(await page.locator('dt:text-is("Similar sessions") + dd').innerText(),
               '7 of 10 sessions that looked like this did not finish (212 seen)');
  assert.equal(await page.locator('dt:text-is("Calls left") + dd').innerText(), '4 of 5 such sessions needed 3 to 12 more calls (80 seen)');
  await monitor.report(id, { kind: 'end', outcome: 'completed' });
  await page.locator('.now .health.completed').waitFor();
  assert.equal(await facts.getByText('Similar sessions').count(), 0);
}, { spec: { agent: 'worker' }, prepare: async () => writeModel(`${monitor.database}-prediction.json`) });

onSession('says nothing of similar sessions of an agent that is not known', fourCalls, async (page) => {
  await page.locator('dt:text-is("Heard from")').waitFor();
  assert.equal(await page.locator('dt:text-is("Similar sessions")').count(), 0);
}, { spec: { agent: 'stranger' } });

onSession('lists by which ways it was heard', [change('planned')], async (page, id) => {
  const facts = page.locator('.facts');
  await facts.getByText(/^agent \d+ s ago$/).waitFor();
  await monitor.ask('/api/hooks/codex', { session_id: id, hook_event_name: 'UserPromptSubmit', prompt: 'build it' });
  await facts.getByText(/^hooks \d+ s ago$/).waitFor();
  const cancel = { by: 'ann', reason: 'enough' };
  await monitor.ask(`/api/autonomous/sessions/${id}/cancel`, cancel);
  await page.getByText('ann asked it to stop').waitFor();
  const heard = page.locator('dt:text-is("Heard from") + dd > div');
  assert.deepEqual((await heard.allInnerTexts()).map((text) => text.replace(/\d+ s/, 'N s')), ['agent N s ago', 'hooks N s ago']);
  assert.equal(await heard.first().getAttribute('title'), '1 report');
});

onSession('shows what its ways cannot know as unknown', [], async (page, id) => {
  const blind = page.locator('dt:text-is("Blind spots") + dd');
  await monitor.ask('/api/hooks/codex', { session_id: id, hook_event_name: 'UserPromptSubmit', prompt: 'build it' });
  await blind.getByText('tokens, the model server: unknown', { exact: true }).waitFor();
  await monitor.report(id, change('planned'), { kind: 'budget', name: 'update', tokens: 5 });
  await blind.getByText('the model server: unknown', { exact: true }).waitFor();
});

const steps = [['read_file', '{"path": "a.cpp"}', 'int a;'], ['apply_patch', '{"path": "a.cpp"}', 'hunk 1 of 1 failed'], ['run_tests', '{}', '2 failed']];
const rounds = Array.from({ length: 6 }, (_, at) => steps.map(([name, args, text]) =>
  [call(name, `${name}${at}`, JSON.parse(args)), result(name, `${name}${at}`, text)])).flat(2);

onSession('one round of a loop is shown', [...beats(1, 'editing'), ...rounds], async (page) => {
  await page.locator('.now .health.looping').waitFor();
  const evidence = page.getByRole('region', { name: 'Evidence' });
  await evidence.locator('.round .event').nth(5).waitFor();
  const said = await evidence.locator('.round .told').allTextContents();
  assert.deepEqual(said.map((text) => text.split(' · ')[0]), steps.flatMap(([name]) => [name, name]));
  assert.match(said[3], /hunk 1 of 1 failed/);
  await evidence.locator('.round summary').first().click();
  await evidence.locator('.round pre', { hasText: '"call_id": "read_file4"' }).waitFor();
});

onSession('evidence far back is found, and the newest again', [...lives.stuck(), ...Array.from({ length: 150 }, (_, at) => ({ kind: 'message', text: `${at}` }))], async (page) => {
  await page.locator('.event.message').first().waitFor();
  assert.equal(await page.locator('.event.heartbeat').count(), 0);
  await page.getByRole('region', { name: 'Evidence' }).getByRole('link').first().click();
  await page.locator('.event.heartbeat.meant').waitFor();
  await page.getByRole('button', { name: 'Back to the newest' }).click();
  await page.locator('.event .told', { hasText: /^149$/ }).waitFor();
});

onSession('events come live, by kind, and page by page', many(130), async (page, id) => {
  const all = page.locator('.event');
  await page.locator('.event .told', { hasText: 'step_129' }).waitFor();
  assert.equal(await all.count(), 100);
  await monitor.report(id, { kind: 'message', name: 'assistant', text: 'hello' });
  await page.locator('.event:first-child .told', { hasText: 'assistant · hello' }).waitFor();
  await page.getByRole('button', { name: 'Older events' }).click();
  await page.locator('.event .told', { hasText: 'step_0 ' }).waitFor();
  assert.equal(await all.count(), 131);
  await page.getByLabel('Kind of event').selectOption('message');
  await page.locator('.event.state_change').first().waitFor({ state: 'detached' });
  await all.first().waitFor();
  assert.equal(await all.count(), 1);
  await monitor.report(id, change('unseen'), { kind: 'message', text: 'again' });
  await page.locator('.event .told', { hasText: 'again' }).waitFor();
  assert.equal(await all.count(), 2);
});

onSession('health and timeline follow the session', lives.progressing(1), async (page, id) => {
  await page.locator('.now .health.progressing').waitFor();
  await monitor.report(id, ...beats(8, 'reflection', 10));
  await page.locator('.now .health.stuck').waitFor();
  await page.locator('.changes .health.stuck').waitFor();
  await page.locator('.timeline .sums .stuck').waitFor();
  await monitor.report(id, { kind: 'end', outcome: 'failed', error: 'gave up' });
  await page.locator('.now .health.failed').waitFor();
  assert.match(await page.locator('.reason').textContent(), /Gave up/);
  assert.ok(await page.getByRole('button', { name: 'Cancel session' }).isHidden());
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save the evidence' }).click();
  assert.equal((await saved).suggestedFilename(), `watchdog-${id}.tar`);
});

onSession('time that waited for a person keeps its look', [change('built'), { kind: 'wait', waiting_for: 'approval', text: 'May I deploy?' }], async (page, id) => {
  await page.locator('.timeline .sums .needs_input').waitFor();
  await monitor.report(id, { kind: 'user_input', text: 'yes' }, change('deployed'), { kind: 'wait', waiting_for: 'quota' });
  await page.locator('.now .health.waiting').waitFor();
  await page.locator('.timeline .sums .waiting').waitFor();
  assert.equal(await page.locator('.timeline .sums .needs_input').count(), 1);
  assert.deepEqual(await page.locator('.changes .health').allTextContents(), ['waiting', 'progressing', 'needs input', 'progressing']);
});

onSession('running tools tick, and end', [...beats(1, 'testing'), { kind: 'turn', name: 'turn_start', call_id: 't1' }, call('shell', 'c1', { command: 'make' }, 't1')], async (page, id) => {
  const tool = page.locator('.running .tool');
  await tool.locator('.pace').waitFor();
  const elapsed = async () => Number((await tool.locator('.pace').textContent()).match(/(\d+) s/)[1]);
  const first = await elapsed();
  await page.waitForFunction((was) => Number(document.querySelector('.tool .pace').textContent.match(/\d+/)[0]) > was, first);
  const paces = await page.evaluate(async () => {
    const folder = document.querySelector('script').src.replace(/[^/]+$/, '');
    const { pace } = await import(`${folder}health.js`);
    return [9999, 10000, 29999, 30000].map(pace);
  });
  assert.deepEqual(paces, ['brief', 'lasting', 'lasting', 'long']);
  await monitor.report(id, { kind: 'tool_progress', call_id: 'c1', text: '3 of 9', accepted: 1 });
  await tool.getByText('3 of 9').waitFor();
  await monitor.report(id, result('shell', 'c1', 'ok'));
  await tool.waitFor({ state: 'detached' });
  await page.locator('.running .turn').waitFor();
});

onSession('model server activity is shown in words, with a bar if the end is known', lives.progressing(1), async (page, id) => {
  const server = page.locator('.server');
  assert.ok(await server.isHidden());
  const reading = (done, more) => ({ kind: 'evidence', call_id: 'r', state: 'reading', done, total: 61440, ...more });
  await monitor.report(id, reading(2048, { text: 'the <b>prompt</b> moves' }));
  await server.getByText('reads the prompt: 2,048 of 61,440 tokens (3 %)').waitFor();
  await server.getByText('the <b>prompt</b> moves').waitFor();
  await monitor.report(id, reading(41216, { left_ms: 118000 }));
  await server.getByText('reads the prompt: 41,216 of 61,440 tokens (67 %), about 2 min left').waitFor();
  const bar = server.getByRole('progressbar');
  assert.deepEqual(await bar.evaluate(({ value, max }) => [value, max]), [41216, 61440]);
  assert.deepEqual(await barriers(page), []);
  await page.locator('.event.evidence .told', { hasText: 'reading 41,216 / 61,440, ~2 min' }).waitFor();
  await monitor.report(id, { kind: 'evidence', call_id: 'r', state: 'writing', done: 312 });
  await server.getByText('writes the answer: 312 tokens so far').waitFor();
  assert.equal(await bar.count(), 0);
  await monitor.report(id, { kind: 'evidence', call_id: 'r', state: 'hung', text: 'no token, no CPU' });
  await page.locator('.now .health.stuck').waitFor();
  assert.equal(await page.locator('.reason').textContent(), 'The model server hangs: no token, no CPU');
  await monitor.report(id, { kind: 'evidence', call_id: 'r', state: 'over' });
  await server.waitFor({ state: 'hidden' });
  await page.locator('.now .health.progressing').waitFor();
});

onSession('cancelling asks first, says what happens, and tells the agent why', lives.stuck(), async (page, id) => {
  const button = page.getByRole('button', { name: 'Cancel session' });
  await button.click();
  const dialog = page.getByRole('dialog', { name: `Cancel session ${id}` });
  assert.match(await dialog.textContent(), /Its agent is asked to stop/);
  await dialog.getByRole('button', { name: 'Back' }).click();
  assert.equal((await monitor.ask(`/api/autonomous/progress/${id}`)).cancel, null);
  await button.click();
  await dialog.getByLabel('Reason').fill('it goes <b>round</b>');
  await dialog.getByRole('button', { name: 'Cancel the session' }).click();
  await dialog.getByText('cancel requested; the agent will see it with its next report').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.locator('.notice', { hasText: 'asked it to stop' }).filter({ hasText: 'it goes <b>round</b>' }).waitFor();
  const { directive } = await monitor.report(id, { kind: 'message', text: 'still here' });
  assert.equal(directive.cancel.reason, 'it goes <b>round</b>');
  await monitor.report(id, { kind: 'end', outcome: 'cancelled' });
  await page.locator('.now .health.cancelled').waitFor();
});

onSession('turns and calls are aborted one by one', [{ kind: 'turn', name: 'turn_start', call_id: 't 2' }, call('shell', 'c/2', {}, 't 2')], async (page, id) => {
  await page.getByRole('button', { name: 'Abort call' }).click();
  await page.getByRole('button', { name: 'Abort the call' }).click();
  await page.getByText('The call is asked to stop.').waitFor();
  await page.keyboard.press('Escape');
  const told = async () => (await monitor.report(id, { kind: 'message', text: 'm' })).directive.aborts.map(({ turnId, toolId }) => [turnId, toolId]);
  assert.deepEqual(await told(), [['t 2', 'c/2']]);
  await page.getByRole('button', { name: 'Abort turn' }).click();
  await page.getByRole('button', { name: 'Abort the turn' }).click();
  await page.getByText('The turn is asked to end.').waitFor();
  await page.keyboard.press('Escape');
  assert.deepEqual((await told()).at(-1), ['t 2', null]);
});

onSession('a refusal by the monitor is shown', lives.progressing(2), async (page) => {
  await page.getByRole('button', { name: 'Ask for a check' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Ask for a check' }).click();
  await page.locator('dialog .trouble', { hasText: /model/ }).waitFor();
  assert.ok(await page.getByRole('dialog').getByRole('button', { name: 'Ask for a check' }).isEnabled());
});

onSession('budget, opinions, labels, parent and children are there', [change('begun'), { kind: 'opinion', status: 'B', confidence: 0.5, text: 'in circles' },
  { kind: 'budget', name: 'update', current_step: 27, max_steps: 30, tokens: 5, max_tokens: 10 }, { kind: 'wait', waiting_for: 'dependency' }],
async (page, id) => {
  assert.match(await page.getByRole('region', { name: 'Budget' }).textContent(), /steps27 of 30.*tokens5 of 10/);
  assert.match(await page.getByRole('region', { name: 'Model checks' }).textContent(), /looping.*50 % sure.*in circles/);
  assert.match(await page.locator('.labels').textContent(), /team: apps/);
  await page.getByRole('link', { name: 'its-parent' }).waitFor();
  await monitor.make('its-child', { parentSessionId: id });
  await monitor.report('its-child', ...lives.stuck());
  await page.reload();
  await page.getByRole('region', { name: 'Children' }).getByRole('link', { name: 'its-child' }).waitFor();
  await page.getByText('Because its child').waitFor();
}, { spec: { parentSessionId: 'its-parent', labels: { team: 'apps' }, task: 'wait', agent: 'coder' } });

const plan = { todos: [{ content: 'a', status: 'completed' }, { content: 'b', status: 'pending' }] };
onSession('notices of a turn and of its group are beside the state', [
  { kind: 'tool_call', name: 'TodoWrite', args: plan }, { kind: 'tool_result', name: 'TodoWrite', text: 'ok' }, { kind: 'idle' }],
async (page, id) => {
  await page.locator('.now .health.your_turn').waitFor();
  await page.getByText('The turn ended with 1 of 2 plan items open', { exact: true }).waitFor();
  await monitor.make('its-helper', { parentSessionId: id });
  await monitor.report('its-helper', change('begun'), { kind: 'idle' });
  await page.reload();
  await page.getByText(`The turn ended with 1 of 2 plan items open. Everybody waits: ${id} waits for a prompt; its-helper waits for ${id}`).waitFor();
});

const longTask = `Split the checkout module. ${'Keep every test green and write down why. '.repeat(100)}`.slice(0, 4096);
for (const [where, viewport] of Object.entries({ 'at a desk': { width: 1280, height: 800 }, 'on a phone': { width: 390, height: 844 } })) {
  onSession(`a task of 4 KB leaves room for how the session is: ${where}`, lives.stuck(), async (page) => {
    const columns = page.locator('.columns');
    await columns.waitFor();
    assert.ok((await columns.boundingBox()).y < viewport.height * 0.7, `it begins at ${(await columns.boundingBox()).y} px`);
    const task = page.locator('details.task');
    assert.ok((await task.locator('summary').textContent()).startsWith('Split the checkout module.'));
    await task.locator('summary').click();
    assert.equal((await task.locator('p').textContent()).trim(), longTask.trim());
    assert.deepEqual(await barriers(page), []);
  }, { viewport, spec: { task: longTask, agent: 'coder' } });
}

onSession('a wait for a person has one name everywhere', [change('built'), { kind: 'wait', waiting_for: 'approval', text: 'May I deploy?' }], async (page) => {
  await page.locator('.now .health.needs_input').waitFor();
  await page.locator('.changes .health.needs_input').waitFor();
  assert.match(await page.locator('.timeline .sums').getAttribute('aria-label'), /Now needs input\.$/);
  assert.equal(await page.getByText('blocked').count(), 0);
});

const alerts = {
  alerts: [{ alertId: 7, sessionId: 's', health: 'stuck', kind: 'alert', reason: 'its loop went round', at: Date.now() - 5000,
             channels: [{ name: 'team', state: 'dead', attempts: 9, error: 'no such host' }], acknowledged: null, snoozedUntil: null }],
  channels: [{ name: 'team', kind: 'webhook', state: 'dead', error: 'no such host', oldestUnsentMs: 5 },
             { name: 'slow', kind: 'webhook', state: 'ok', error: null, oldestUnsentMs: 90000 },
             { name: 'well', kind: 'webhook', state: 'ok', error: null, oldestUnsentMs: 900 }],
  next: null,
};
onSession('an alert about the session is shown, acknowledged and snoozed', lives.stuck(), async (page, id) => {
  const section = page.getByRole('region', { name: 'Alerts' });
  const told = async () => (await monitor.ask(`/api/alerts?sessionId=${id}`)).alerts[0];
  for (const [name, done] of [['Snooze 1 h', 'Nothing is sent for an hour.'], ['Acknowledge', 'It is acknowledged.']]) {
    await section.getByRole('button', { name }).click();
    await page.getByRole('dialog').getByRole('button', { name: name.split(' ')[0] }).click();
    await page.getByText(done).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  }
  const { acknowledged, snoozedUntil } = await told();
  assert.ok(acknowledged.at > 0);
  assert.ok(snoozedUntil > Date.now());
});

onSession('channels that do not get through are shown, and what they were to tell', lives.stuck(), async (page) => {
  const section = page.getByRole('region', { name: 'Alerts' });
  await section.getByText('team: dead (no such host)').waitFor();
  await section.getByRole('button', { name: 'Acknowledge' }).click();
  const asked = page.waitForRequest('**/api/alerts/7/acknowledge');
  await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge' }).click();
  assert.equal((await asked).method(), 'POST');
  await page.getByText('It is acknowledged.').waitFor();
  await page.goto(monitor.url);
  await page.getByText('Alerts by team do not get through (dead: no such host). ' +
                       'The oldest alert by slow has been waiting for 90 s.', { exact: true }).waitFor();
}, { prepare: async (page) => {
  await page.route('**/api/alerts?*', (route) => route.fulfill({ json: alerts }));
  await page.route('**/api/alerts/*/*', (route) => route.fulfill({ json: { ok: true } }));
} });

onSession('the alerts of an attempt before ask for nothing, and a recovery says what it is',
          [...lives.stuck(), { kind: 'end', outcome: 'failed', error: 'disk is full' }], async (page, id) => {
  const section = page.getByRole('region', { name: 'Alerts' });
  await section.getByRole('button', { name: 'Acknowledge' }).waitFor();
  await monitor.report(id, { kind: 'start' }, ...lives.progressing(1), { kind: 'end', outcome: 'completed' });
  await page.reload();
  await live(page);
  const over = section.locator('li', { has: page.locator('.health.recovered') });
  assert.match(await over.textContent(), /^recoveredThe trouble is over/);
  assert.equal(await section.getByRole('button').count(), 0);
  await page.goto(`${monitor.url}/alerts`);
  await page.getByLabel('Only open ones').waitFor();
  assert.equal(await page.locator(`.alerts.all a[href="/sessions/${id}"]`).count(), 0);
});

onSession('a counter that stays at 0 gets no chart', [change('begun'), ...[0, 0, 0].map((n) => ({ kind: 'heartbeat', counters: { prompt_tokens: n, tokens: 1 } }))], async (page, id) => {
  for (const tokens of [5, 9]) await monitor.report(id, { kind: 'heartbeat', counters: { prompt_tokens: 0, tokens } });
  await page.locator('.counters figcaption', { hasText: /^tokens / }).waitFor();
  assert.equal(await page.locator('.counters figure').count(), 1);
});

onSession('acting asks for a token, watching does not', lives.stuck(), async (page) => {
  await page.getByRole('button', { name: 'Cancel session' }).click();
  const login = page.getByRole('dialog', { name: 'Log in' });
  await login.getByLabel('Token').fill('wrong');
  await login.getByRole('button', { name: 'Log in' }).click();
  await login.getByText('That is not a token of this monitor.').waitFor();
  await login.getByLabel('Token').fill(monitor.token);
  await login.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('dialog', { name: /^Cancel session/ }).waitFor();
}, { stranger: true });

test('the token of the address is used once, and taken out of it', async () => {
  const page = await open(browser, `${monitor.url}/?q=x#token=${monitor.token}`);
  await live(page);
  assert.equal(page.url(), `${monitor.url}/?q=x`);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('button', { name: 'Log in' }).waitFor();
  assert.equal((await page.evaluate(() => fetch('/api/access').then((answer) => answer.json()))).name, null);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('where reading needs a token too, there is nothing but a login before', async (t) => {
  const shut = await Monitor.start({ WATCHDOG_MONITOR_BEHIND_PROXY: 'true' });
  t.after(() => shut.end());
  await shut.report('s', change('begun'));
  for (const javaScriptEnabled of [true, false]) {
    const page = await open(browser, `${shut.url}/sessions/s`, { javaScriptEnabled });
    assert.doesNotMatch(await page.locator('body').innerText(), /begun/);
    if (javaScriptEnabled) assert.deepEqual(await barriers(page), []);
    await page.getByLabel('Token').fill(shut.token);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL(`${shut.url}/`);
    await page.getByRole('link', { name: 's', exact: true }).waitFor();
    await page.context().close();
  }
  const page = await open(browser, `${shut.url}/sessions/s#token=${shut.token}`);
  await live(page);
  await page.locator('.event .told', { hasText: 'begun' }).waitFor();
  await page.context().close();
});

const hostile = '<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>"\'>&lt;{{body}}</title><svg onload=globalThis.hit=1>';
test('text from agents never becomes markup', async () => {
  await monitor.make('hostile', { agent: hostile, task: hostile, labels: { [hostile]: hostile }, parentSessionId: 'parent' });
  await monitor.report('hostile', ...beats(2, hostile), change(hostile, { [hostile]: hostile }), { kind: 'message', name: hostile, text: hostile },
    { kind: 'turn', name: 'turn_start', call_id: hostile }, call(hostile, hostile, { a: hostile }, hostile),
    { kind: 'tool_progress', call_id: hostile, text: hostile, accepted: 1 }, { kind: 'opinion', status: 'B', text: hostile },
    { kind: 'heartbeat', counters: { [hostile.slice(0, 60)]: 1 } }, { kind: 'error', name: hostile, text: hostile }, { kind: 'wait', waiting_for: hostile });
  await monitor.ask('/api/autonomous/sessions/hostile/cancel', { by: hostile, reason: hostile });
  await monitor.make('hostile-end', { agent: hostile });
  await monitor.report('hostile-end', { kind: 'end', outcome: 'failed', reason: hostile, error: hostile });
  for (const javaScriptEnabled of [true, false]) {
    const page = await open(browser, 'about:blank', { javaScriptEnabled });
    for (const path of ['/', '/?families=1', '/sessions/hostile', '/sessions/hostile-end']) {
      await page.goto(monitor.url + path);
      if (javaScriptEnabled) {
        await live(page);
        await page.locator(path.startsWith('/s') ? '.event' : '.sessions a.id').first().waitFor();
        for (const summary of await page.locator('summary:visible').all()) await summary.click();
      }
      const found = await page.locator('img, main script, main svg[onload], [onerror], [onload]').count();
      assert.equal(found, 0, path);
      assert.match(await page.locator('main').innerText(), /<img src=x onerror=/);
      if (javaScriptEnabled) assert.equal(await page.evaluate(() => globalThis.hit), undefined);
      if (javaScriptEnabled) assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    }
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

for (const colorScheme of ['light', 'dark']) {
  onSession(`axe-core finds nothing serious in ${colorScheme}`, [...lives.stuck(), ...lives.tool(3).slice(3), { kind: 'budget', name: 'update', current_step: 29, max_steps: 30 },
    ...beats(8, 'reflection', 20)], async (page) => {
    await page.locator('.event').first().waitFor();
    assert.deepEqual(await barriers(page), []);
    await page.getByRole('button', { name: 'Cancel session' }).click();
    assert.deepEqual(await barriers(page), []);
    await page.keyboard.press('Escape');
    await page.setViewportSize({ width: 390, height: 844 });
    assert.deepEqual(await barriers(page), []);
  }, { colorScheme, spec: { task: 'Repair it', labels: { team: 'apps' } } });
}

test('files are kept for ever, compressed where that is understood', async () => {
  const page = await (await fetch(monitor.url)).text();
  const files = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, file]) => file);
  assert.ok(files.length >= 3);
  for (const file of files) {
    for (const coding of ['gzip', 'identity']) {
      const headers = { 'Accept-Encoding': coding };
      const answer = await fetch(monitor.url + file, { headers });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('Content-Encoding'), coding === 'gzip' ? 'gzip' : null);
      assert.equal(answer.headers.get('Cache-Control'), 'public, max-age=31536000, immutable');
      assert.ok((await answer.text()).length > 50);
      const again = await fetch(monitor.url + file, { headers: { ...headers, 'If-None-Match': answer.headers.get('ETag') } });
      assert.equal(again.status, 304);
      assert.equal(await again.text(), '');
    }
  }
  for (const [accepted, coding] of [['gzip, br', 'gzip'], ['identity', null]]) {
    const answer = await fetch(monitor.url, { headers: { 'Accept-Encoding': accepted } });
    assert.equal(answer.headers.get('Content-Encoding'), coding);
    assert.match(await answer.text(), /<\/html>\s*$/);
  }
  assert.equal((await fetch(`${monitor.url}/assets/0/app.js`)).status, 404);
  assert.equal((await fetch(`${monitor.url}/sessions/nobody`)).status, 404);
});
