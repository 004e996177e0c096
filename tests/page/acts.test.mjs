// The page of a session that loops behind hooks shows the acts of rules. The first page says whether rules act.

import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { launch, live, open } from './browser.mjs';
import { Monitor } from './monitor.mjs';

let browser;
let monitor;
before(async () => {
  browser = await launch();
  monitor = await Monitor.start({ WATCHDOG_RECOVERY_RULES_TELL_STEP: 'nudge', WATCHDOG_RECOVERY_RULES_DENY_STEP: 'refuse', WATCHDOG_RECOVERY_RULES_DENY_DRY_RUN: 'true' });
});
after(async () => {
  await browser.close();
  await monitor.end();
});

let calls = 0;
/** One call behind the hooks of Claude Code. */
async function called(session, command, response) {
  const of = { session_id: session, tool_name: 'Bash', tool_use_id: `t${++calls}`, tool_input: { command } };
  await monitor.ask('/api/hooks/claude-code', { ...of, hook_event_name: 'PreToolUse' });
  await monitor.ask('/api/hooks/claude-code', { ...of, hook_event_name: 'PostToolUse', tool_response: response });
}

const clean = async (page) => {
  assert.deepEqual(page.faults, []);
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  await page.context().close();
};

test('a session shows what rules did, on which proof, and what came of it', async () => {
  const id = 'loops';
  await monitor.ask('/api/hooks/claude-code', { session_id: id, hook_event_name: 'UserPromptSubmit', prompt: 'mend the test' });
  const page = await open(browser, `${monitor.url}/sessions/${id}#token=${monitor.token}`);
  await live(page);
  const section = page.getByRole('region', { name: 'What the monitor did' });
  await page.locator('.event').first().waitFor();
  assert.ok(await page.locator('section.acts').isHidden());
  for (let at = 0; at < 12; ++at) await called(id, 'pytest tests/a', '2 failed');
  await page.locator('.now .health.looping').waitFor();
  const first = section.locator('li', { hasText: 'nudge by rule tell: done' }).first();
  await first.waitFor();
  await section.locator('li', { hasText: 'refuse by rule deny: dry run: nothing was done' }).first().waitFor();
  const { audit } = await monitor.ask(`/api/audit?sessionId=${id}&limit=1000`);
  const [nudge] = audit;
  assert.deepEqual([nudge.action, nudge.actor, nudge.result], ['nudge', 'rule:tell', 'ok']);
  assert.match(await first.innerText(), new RegExp(`looping \\(R1\\), events ${nudge.proof.events[0]} to ${nudge.proof.events[1]}\\s+Afterwards: open`));
  // The newest is the last, as in the log.
  const said = (await section.locator('li').allInnerTexts()).map((text) => text.split(' ')[0]);
  assert.deepEqual(said, audit.filter(({ proof }) => proof).map(({ action }) => action));
  if (process.env.SCREENSHOTS) {
    await page.screenshot({ path: `${process.env.SCREENSHOTS}/acts.png`, fullPage: true });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.screenshot({ path: `${process.env.SCREENSHOTS}/acts_phone.png`, fullPage: true });
    await page.setViewportSize({ width: 1280, height: 800 });
  }
  await first.getByRole('link').first().click();
  assert.equal(await page.locator('.event.meant').getAttribute('data-seq'), String(nudge.proof.events[0]));
  for (let at = 0; at < 8; ++at) await called(id, `grep -n part_${at} src`, `src/part_${at}.py: 1`);
  await section.locator('li', { hasText: 'nudge by rule tell' }).first().getByText('Afterwards: recovered').waitFor();
  await clean(page);
});

test('those who may not read acts see none', async () => {
  appendFileSync(`${monitor.database}-token`, 'viewer read correct-horse-battery-staple\n');
  const page = await open(browser, 'about:blank');
  const may = async () => (await (await fetch(`${monitor.url}/api/access`, { headers: { Authorization: 'Bearer correct-horse-battery-staple' } })).json()).name;
  while (await may() !== 'viewer') await pause(100);  // the file is read every second
  await page.goto(`${monitor.url}/sessions/loops#token=correct-horse-battery-staple`);
  await live(page);
  await page.locator('.event').first().waitFor();
  assert.ok(await page.locator('section.acts').isHidden());
  await clean(page);
});

test('an act has the result of its own verdict, and a dry run has none', async () => {
  const page = await open(browser, `${monitor.url}/#token=${monitor.token}`);
  await live(page);
  const words = await page.evaluate(async () => {
    const folder = document.querySelector('script').src.replace(/[^/]+$/, '');
    const { actsOf } = await import(`${folder}acts.js`);
    const entry = (actor, action, result, ...events) => ({ actor, action, result, at: 0, proof: { text: 'looping (R1)', events } });
    return actsOf([
      { actor: 'user', action: 'cancel', result: 'ok', at: 0, proof: null },
      entry('rule:tell', 'nudge', 'ok', 3, 17), entry('rule:tell', 'nudge', 'ok', 3, 22),
      entry('rule:deny', 'refuse', 'would refuse', 3, 22), entry('rule:tell', 'nudge', 'held out', 40, 50),
      entry('rule:stop', 'end_call', '2 processes ended', 60), entry('rule:tell', 'nudge', 'ok', 90, 99),
      entry('rule:tell', 'trial', 'not recovered (codex)', 3, 17), entry('rule:tell', 'trial', 'held out, recovered (codex)', 40, 50),
    ]).map(({ act, said, after }) => `${act.actor} ${act.proof.events[0]}: ${said} | ${after}`);
  });
  assert.deepEqual(words, ['rule:tell 3: done | not recovered', 'rule:tell 3: done | null', 'rule:deny 3: dry run: nothing was done | null',
                           'rule:tell 40: held out: left alone, to compare | recovered', 'rule:stop 60: 2 processes ended | open', 'rule:tell 90: done | open']);
  await clean(page);
});

test('the first page says that rules are paused, or switched themselves off', async () => {
  await monitor.ask('/api/recovery/pause', {});
  const page = await open(browser, `${monitor.url}/#token=${monitor.token}`);
  await live(page);
  const note = page.locator('#rules');
  await page.getByText('All rules are paused: none acts until watchdog-monitor recovery resume').waitFor();
  if (process.env.SCREENSHOTS) {
    await page.screenshot({ path: `${process.env.SCREENSHOTS}/rules.png` });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.screenshot({ path: `${process.env.SCREENSHOTS}/rules_phone.png` });
  }
  await monitor.ask('/api/recovery/resume', {});
  await note.waitFor({ state: 'hidden' });
  await page.route('**/api/recovery', (route) => route.fulfill({ json: { paused: false, rules: [{ name: 'tell', off: true }, { name: 'deny', off: false }] } }));
  await page.getByText('Rule tell switched itself off, because fewer sessions recovered after its acts: watchdog-monitor recovery report').waitFor();
  await clean(page);
});
