// node screenshots.mjs FOLDER [COUNT]: pictures of all pages, as docs/images has them, of a staged half hour. COUNT more
// sessions are added. With the Debian package faketime the monitor's half hour takes a minute; without it the bars are short.

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, live, open } from './browser.mjs';
import { Monitor, beats, call, change, populate, result } from './monitor.mjs';

const [folder = 'screenshots', count = '0'] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';
const speed = existsSync(faketime) ? 30 : 1;
const monitor = await Monitor.start(speed > 1 ? { LD_PRELOAD: faketime, FAKETIME: `+0 x${speed}` } : {});
const minutes = (n) => new Promise((done) => setTimeout(done, speed > 1 ? n * 60000 / speed : 20));

const id = (n) => `${(0x7d3f91a0 + n * 0x01f3a5c7 >>> 0).toString(16).padStart(8, '0')}-4c1e-4b02-9d3a-5f0e1c2b3a4d`;
const say = (session, ...events) => monitor.report(session, ...events);
const begin = async (session, agent, directory, prompt, more = {}) => {
  await monitor.make(session, { agent, labels: { cwd: `/home/ada/${directory}`, via: 'hooks' }, ...more });
  await say(session, { kind: 'start' }, { kind: 'user_input', text: prompt });
};
let calls = 0;
const did = (name, args, text) => { const key = `c${++calls}`; return [call(name, key, args), result(name, key, text)]; };
const open_ = (name, args) => call(name, `c${++calls}`, args);
const ask = (waiting_for, text) => ({ kind: 'wait', waiting_for, text });
const spoke = (text) => ({ kind: 'message', name: 'assistant', text });

/** Works on for some minutes: one call of a minute after the other, with tokens. */
async function works(session, n, tools = ['read_file', 'grep', 'apply_patch', 'shell']) {
  for (let at = 0; at < n; ++at) {
    const name = tools[at % tools.length];
    await say(session, ...did(name, { path: `src/part_${at}.ts` }, `${20 + at * 7} lines`), change('step_done', { at }),
              { kind: 'budget', name: 'update', current_step: at + 1, max_steps: 60, tokens: 4100 * (at + 1) + 300, max_tokens: 200000, cost: 0.04 * (at + 1), max_cost: 5 });
    await minutes(1);
  }
}

const checkout = id(1);
async function checkoutLife() {
  await begin(checkout, 'claude-code', 'shop', 'Split the checkout module into payment and delivery');
  let tokens = 0;
  for (let turn = 1; turn <= 6; ++turn) {
    const t = `turn-${turn}`;
    const request = { kind: 'evidence', call_id: `r${turn}` };
    await say(checkout, { kind: 'turn', name: 'turn_start', call_id: t }, { ...request, state: 'reading', done: 2000, total: 20000 + 6000 * turn });
    await minutes(0.4);
    await say(checkout, { ...request, state: 'reading', done: 15000 + 6000 * turn, total: 20000 + 6000 * turn });
    await minutes(0.2);
    await say(checkout, { ...request, state: 'writing', done: 300 });
    await minutes(0.5);
    const keys = ['read_file', 'grep', 'shell'].map((name, at) => ({ name, key: `k${turn}-${at}` }));
    await say(checkout, { ...request, state: 'over' }, ...keys.map(({ name, key }) => call(name, key, { path: `src/checkout/${name}.ts` }, t)));
    await minutes(0.4);
    await say(checkout, result('read_file', keys[0].key, '240 lines'),
              turn === 4 ? { kind: 'error', name: 'grep', call_id: keys[1].key, text: 'no such directory: src/checkout/old' } : result('grep', keys[1].key, `${turn * 9} matches`));
    for (let beat = 0; beat < 4; ++beat) {
      tokens += 380 + 90 * turn - 60 * beat;
      await say(checkout, { kind: 'heartbeat', source: 'loop', iteration: turn * 10 + beat, phase: 'testing', counters: { tokens } });
      await minutes(0.35);
    }
    await say(checkout, result('shell', keys[2].key, '480 passed'), change('tests_passed', { passed: 480 }), { kind: 'turn', name: 'turn_end', call_id: t },
              { kind: 'budget', name: 'update', current_step: turn * 4, max_steps: 30, tokens: 12000 * turn, max_tokens: 200000, elapsed_seconds: 180 * turn, remaining_seconds: 3600 - 180 * turn });
  }
  await say(checkout, { kind: 'turn', name: 'turn_start', call_id: 'turn-7' }, spoke('The old module has no users left; all callers are moved.'),
            call('Bash', 'k7', { command: 'git rm -r src/checkout/legacy' }, 'turn-7'), ask('approval', 'May I delete the old module src/checkout/legacy and its 14 tests?'));
}

const steps = (at) => [...did('read_file', { path: 'src/parser.cpp' }, 'int parse() {'), call('apply_patch', `p${at}`, { path: 'src/parser.cpp' }),
  { kind: 'error', name: 'apply_patch', call_id: `p${at}`, text: 'hunk 1 of 1 failed' }, ...did('run_tests', {}, '2 failed')];
const lives_ = [
  checkoutLife,
  async () => { const s = id(2); await begin(s, 'codex', 'parser', 'Mend the flaky tests of the parser'); await works(s, 9); for (let at = 0; at < 14; ++at) { await say(s, ...steps(at)); await minutes(1); } },
  async () => { await monitor.make('build-move', { agent: 'planner', task: 'Move the build to C++20' }); for (let at = 1; at < 12; ++at) { await say('build-move', change('file_moved', { at }), ...beats(1, 'planning', at)); await minutes(1.5); }
    await say('build-move', ...beats(8, 'reflection', 20)); },
  async () => { const s = id(3); await begin(s, 'opencode', 'site', 'Write the release notes'); await works(s, 12); await minutes(4); await say(s, { kind: 'end', outcome: 'failed', error: 'disk is full' }); },
  async () => { const s = id(4); await begin(s, 'codex', 'api', 'Upgrade the Postgres driver'); await works(s, 13); await say(s, ask('input', 'Which database should the integration tests use, the local one or the shared staging server?')); },
  async () => { const s = id(5); await begin(s, 'claude-code', 'ops', 'Summarise the incident of Tuesday'); await works(s, 4); await say(s, ask('login', 'authentication_failed: the token has expired')); },
  async () => { const s = id(6); await begin(s, 'claude-code', 'research', 'Compare the vendors'); await works(s, 16); await say(s, ask('quota', 'You have hit your limit')); },
  async () => { await monitor.make('rank-train', { agent: 'planner', task: 'Train the ranking model' }); await works('rank-train', 20, ['train']); },
  ...['Answer the security review', 'Update dependencies', 'Write property tests for the queue', 'Measure the start-up time', 'Check all links'].map((title, at) => async () => {
    const s = id(10 + at); await begin(s, ['claude-code', 'gemini-cli', 'codex', 'cursor', 'opencode'][at], ['web', 'api', 'core', 'cli', 'site'][at], title, at === 4 ? { parentSessionId: checkout } : {});
    await works(s, 26); await say(s, open_('shell', { command: 'npm test' })); }),
  ...['Rename the flags', 'Explain the scheduler'].map((title, at) => async () => { const s = id(20 + at); await begin(s, 'claude-code', 'cli', title); await works(s, 8 + 6 * at);
    await say(s, spoke('All 14 flags are renamed; the old names stay for one release.'), { kind: 'idle', text: 'Its answer is complete' }); }),
  ...['Sort the inbox', 'Compress the images', 'Fix the typo'].map((title, at) => async () => { const s = id(30 + at); await begin(s, 'gemini-cli', 'home', title); await works(s, 6 + 5 * at); await say(s, { kind: 'end', outcome: 'completed' }); }),
];
if (Number(count) > 0) await populate(monitor, Number(count));
await Promise.all(lives_.map((life) => life()));
await minutes(1);

const browser = await launch();
const desk = { viewport: { width: 1280, height: 800 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };
async function shoot(name, path, ready, options) {
  const page = await open(browser, `${monitor.url}${path}`, options);
  await live(page);
  await page.locator(ready).first().waitFor();
  await page.waitForTimeout(1500);  // the half hour and the counters are asked for when the rest is there
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.context().close();
}
for (const colorScheme of ['light', 'dark']) {
  await shoot(`list-${colorScheme}`, '/', '.sessions tbody .strip', { ...desk, colorScheme });
  await shoot(`activity-${colorScheme}`, `/sessions/${checkout}`, '.activity .counters canvas', { viewport: { width: 1280, height: 1000 }, colorScheme });
}
await shoot('overview', '/overview', '.overview .sums li', { viewport: { width: 1280, height: 720 } });
await shoot('alerts', '/alerts', '.alerts.all li', { viewport: { width: 1280, height: 640 } });
await shoot('list-phone', '/', '.sessions tbody .strip', phone);
await shoot('activity-phone', `/sessions/${checkout}`, '.activity canvas', phone);
await shoot('list-wide', '/', '.sessions tbody .strip', { viewport: { width: 2560, height: 1440 } });
await browser.close();
await monitor.end();
