// Forty sessions of six agents, the proxy and the library, as recorded or documented. Twelve of
// them need a person, and the list shows these first, each with its reason in words.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, live, open } from './browser.mjs';
import { ModelBackend } from './model_backend.mjs';
import { Monitor, beats, call, change, lives } from './monitor.mjs';

const data = process.env.WATCHDOG_TEST_DATA;
const lines = (file) => readFileSync(join(data, file), 'utf8').trim().split('\n').map((line) => JSON.parse(line));

/** The id by which an agent's event names its session. */
function idIn(value) {
  for (const [key, inner] of Object.entries(value)) {
    if (['session_id', 'conversation_id', 'sessionID'].includes(key)) return inner;
    const deeper = inner && typeof inner === 'object' && idIn(inner);
    if (deeper) return deeper;
  }
  return null;
}

let monitor;
/** Sends events of an agent's hooks as those of the session `id`. */
async function replay(agent, id, events) {
  const recorded = events.map(idIn).find(Boolean);
  for (const event of events) await monitor.ask(`/api/hooks/${agent}`, JSON.parse(JSON.stringify(event).replaceAll(recorded, id)));
}

const recording = (name) => lines(`recordings/${name}.jsonl`);
const whole = (name) => recording(name).map(({ event }) => event);
/** A recording up to the event after which its session is in this state. */
const until = (name, state) => whole(name).slice(0, recording(name).findIndex((line) => line.state === state) + 1);
/** What an agent's documentation shows, up to the event that makes such a report. */
function documented(agent, kind, name) {
  const all = lines(`hooks/${agent}.jsonl`);
  const last = all.findIndex(({ reports }) => reports.some((report) => report.kind === kind && (!name || [report.name, report.waiting_for].includes(name))));
  return all.slice(0, last + 1).map(({ hook }) => hook);
}

const failing = (id) => [
  { hook_event_name: 'SessionStart', session_id: id, cwd: '/src/shop', source: 'startup' },
  { hook_event_name: 'UserPromptSubmit', session_id: id, cwd: '/src/shop', prompt: 'Mend the parser' },
  ...Array.from({ length: 8 }, (_, at) => ['PreToolUse', 'PostToolUse'].map((name) => ({
    hook_event_name: name, session_id: id, cwd: '/src/shop', turn_id: 't1', tool_name: 'Bash', tool_use_id: `u${at}`, tool_input: { command: 'make check' },
    ...(name === 'PostToolUse' ? { tool_response: 'Exit code: 2\nWall time: 0.1 seconds\nOutput:\nmake: *** No rule to make target check' } : {}),
  }))).flat()];

/** Who needs a person: the session, its state, and words of its reason. */
const needy = [
  ['claude-asks', 'needs_input', /\?/, () => replay('claude-code', 'claude-asks', until('claude-code-questions-at-the-end', 'needs_input'))],
  ['claude-login', 'needs_input', /log ?in|authenticat/i, () => replay('claude-code', 'claude-login', until('claude-code-failures', 'needs_input'))],
  ['claude-failed', 'failed', /Overloaded/, () => replay('claude-code', 'claude-failed', whole('claude-code-failures'))],
  ['codex-asks', 'needs_input', /approval/, () => replay('codex', 'codex-asks', until('codex-approval', 'needs_input'))],
  ['codex-loops', 'looping', /Bash|make check/, () => replay('codex', 'codex-loops', failing('codex-loops'))],
  ['gemini-asks', 'needs_input', /approval/, () => replay('gemini-cli', 'gemini-asks', until('gemini-approval', 'needs_input'))],
  ['gemini-cut', 'incomplete', /ended before its answer was complete/, () => replay('gemini-cli', 'gemini-cut', whole('gemini-e401'))],
  ['opencode-asks', 'needs_input', /approval/, () => replay('opencode', 'opencode-asks', until('opencode-approval', 'needs_input'))],
  ['copilot-asks', 'needs_input', /./, () => replay('copilot-cli', 'copilot-asks', documented('copilot-cli', 'wait', 'input'))],
  ['own-stuck', 'stuck', /8 iterations without a state change/, () => report('own-stuck', lives.stuck())],
  ['own-failed', 'failed', /The compiler was killed by signal 9/, () => report('own-failed', lives.failed(0))],
  ['own-asks', 'needs_input', /May I deploy\?/, () => report('own-asks', lives.blocked())],
];

async function report(id, events) {
  await monitor.make(id, { agent: 'planner', task: `The task of ${id}` });
  await monitor.report(id, ...events);
}

const several = (count, name, run) => Array.from({ length: count }, (_, at) => () => run(`${name}-${at}`));
const calm = [
  ...several(2, 'claude-done', (id) => replay('claude-code', id, whole('claude-code-waits'))),
  ...several(2, 'claude-rests', (id) => replay('claude-code', id, until('claude-code-waits', 'your_turn'))),
  ...several(3, 'codex-done', (id) => replay('codex', id, whole('codex-tools'))),
  ...several(2, 'codex-rests', (id) => replay('codex', id, until('codex-tools', 'your_turn'))),
  ...several(3, 'gemini-done', (id) => replay('gemini-cli', id, whole('gemini-tools'))),
  ...several(3, 'opencode-rests', (id) => replay('opencode', id, whole('opencode-tools'))),
  ...several(2, 'cursor-rests', (id) => replay('cursor', id, documented('cursor', 'idle'))),
  ...several(1, 'copilot-works', (id) => replay('copilot-cli', id, documented('copilot-cli', 'tool_result'))),
  ...several(4, 'own-works', (id) => report(id, lives.progressing(1))),
  ...several(2, 'own-done', (id) => report(id, lives.completed(1))),
  ...several(1, 'own-waits', (id) => report(id, [...beats(1, 'plan'), change('planned'), { kind: 'wait', waiting_for: 'quota', text: 'the limit of requests' }])),
  ...several(1, 'own-calls', (id) => report(id, [...beats(1, 'build'), change('planned'), call('shell', 'c1', { command: 'ninja' })])),
];
const proxied = 2;

let browser;
let model;
before(async () => {
  model = await ModelBackend.start({ prompt_tokens: 100, prefill: 10_000, batch: 1_024 }, 100);
  monitor = await Monitor.start({ WATCHDOG_PROXY_UPSTREAM: model.url, WATCHDOG_PROXY_PORT: '0' });
  browser = await launch();
  for (let at = 0; at < proxied; ++at) {
    const messages = [{ role: 'user', content: `Say hello, ${at}` }];
    const answer = await fetch(`${monitor.models}/s/proxied-${at}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'small', messages }) });
    assert.equal(answer.status, 200);
    await answer.text();
  }
  for (const run of calm) await run();
  for (const [, , , run] of needy) await run();
});
after(async () => {
  await browser.close();
  await monitor.end();
  await model.end();
});

test('of forty sessions the twelve that need a person come first, each with its reason', async () => {
  const height = 950;  // of a browser on a screen of 1920 × 1080
  const page = await open(browser, monitor.url, { viewport: { width: 1920, height } });
  await live(page);
  await page.waitForFunction((count) => document.title.includes(count), `${needy.length}`);
  const seen = await page.locator('.sessions tbody tr:not(.gap, .head)').evaluateAll((rows) => rows.map((row) => {
    const why = row.querySelector('.why');
    return {
      id: decodeURIComponent(row.querySelector('a.id').pathname.split('/').at(-1)),
      state: row.querySelector('.health').className.split(' ').at(-1),
      attention: row.className,
      why: why.textContent,
      strip: row.querySelector('.strip').getAttribute('aria-label'),
      cut: why.scrollHeight > why.clientHeight + 1 && getComputedStyle(why).overflow === 'hidden',
      bottom: row.getBoundingClientRect().bottom,
    };
  }));
  const list = await monitor.ask('/api/autonomous/progress?limit=100');
  assert.equal(list.sessions.length, needy.length + calm.length + proxied);
  assert.equal(list.sessions.length, 40);
  const first = seen.slice(0, needy.length);
  assert.deepEqual(first.map(({ id }) => id).sort(), needy.map(([id]) => id).sort());
  for (const [id, state, words] of needy) {
    const row = first.find((one) => one.id === id);
    assert.equal(row.state, state, id);
    assert.match(row.why, words, id);
    if (state === 'needs_input') assert.match(row.strip, /needs input$/, id);
    assert.equal(row.cut, false, `${id}: ${row.why}`);
  }
  assert.ok(first.at(-1).bottom <= height, `the twelfth row ends at ${first.at(-1).bottom} of ${height} px`);
  const others = seen.slice(needy.length);
  assert.deepEqual(others.filter(({ attention }) => attention === 'row-needs_you'), []);
  const red = ['needs_input', 'stuck', 'looping', 'dead', 'silent', 'failed', 'incomplete'];
  assert.deepEqual(others.filter(({ state }) => red.includes(state)), []);
  const summary = await monitor.ask('/api/autonomous/summary');
  assert.equal(summary.attention.needs_you, needy.length);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/forty.png` });
  assert.deepEqual(page.faults, []);
});
