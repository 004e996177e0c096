// What an agent asks, on the list and on its session's page, in a real browser: a hook waits for the answer.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { barriers, launch, live, open } from './browser.mjs';
import { Monitor } from './monitor.mjs';

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

const hook = (session, event, more = {}, hold = 0) => monitor.ask(`/api/hooks/claude-code?hold=${hold}`, {
  session_id: session, cwd: '/home/ann/parser', hook_event_name: event, ...more });

/** An agent that asks: its hook's answer comes once a person gave one. */
async function asks(session, tool, input) {
  const facts = { tool_name: tool, tool_use_id: `of-${session}`, tool_input: input };
  await hook(session, 'UserPromptSubmit', { prompt: `Repair the date parser of ${session}` });
  await hook(session, 'PreToolUse', facts);
  return { answer: hook(session, 'PermissionRequest', facts, 120) };
}

function onPage(name, path, run, { prepare = async () => null, ...options } = {}) {
  test(name, async () => {
    const prepared = await prepare();
    const page = await open(browser, `${monitor.url}${path}#token=${monitor.token}`, options);
    await live(page);
    await run(page, prepared);
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    await page.context().close();
  });
}

const row = (page, session) => page.locator('.sessions tbody tr:not(.gap, .head)', { has: page.locator(`a.id[href="/sessions/${session}"]`) });

onPage('a row is answered by its button or its key, after the command was read', '/', async (page) => {
  const held = await asks('listed', 'Bash', { command: 'npm ci && npm test', description: 'Install' });
  await row(page, 'listed').getByRole('button', { name: 'Answer' }).waitFor();
  await row(page, 'listed').locator('a.id').focus();
  await page.keyboard.press('a');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('The agent wants to use Bash:').waitFor();
  assert.equal(await dialog.locator('pre').textContent(), 'npm ci && npm test');
  assert.deepEqual(await barriers(page), []);
  await dialog.getByRole('button', { name: 'Allow' }).click();
  await dialog.getByText("sent to the agent's hook: allow").waitFor();
  assert.equal((await held.answer).hookSpecificOutput.decision.behavior, 'allow');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await row(page, 'listed').getByRole('button', { name: 'Answer' }).waitFor({ state: 'hidden' });
});

for (const [width, colorScheme] of [[1440, 'light'], [390, 'dark']]) {
  const session = `chooses-${width}`;
  onPage(`a session's page begins with the question, ${width} px ${colorScheme}`, `/sessions/${session}`, async (page, held) => {
    const card = page.getByRole('region', { name: 'Your answer' });
    await card.getByText('Which database?').waitFor();
    const legend = page.locator('.activity .sums');
    await legend.getByText('1 call waiting for a person').waitFor();
    assert.equal(await legend.getByText('running').count(), 0, 'a call that waits for a person does not run');
    assert.deepEqual(await barriers(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing scrolls sideways');
    await card.getByLabel('Another answer').fill('a plain file');
    await card.getByRole('button', { name: 'Send' }).click();
    assert.deepEqual((await held.answer).hookSpecificOutput.decision.updatedInput.answers, { 'Which database?': 'a plain file' });
    await card.waitFor({ state: 'hidden' });
  }, { viewport: { width, height: 900 }, colorScheme, prepare: () => asks(session, 'AskUserQuestion', {
    questions: [{ question: 'Which database?', header: 'Database', options: [{ label: 'SQLite' }, { label: 'PostgreSQL' }] }] }) });
}

onPage('a question that is answered elsewhere goes', '/sessions/elsewhere', async (page) => {
  const card = page.getByRole('region', { name: 'Your answer' });
  await card.getByRole('button', { name: 'Deny' }).waitFor();
  await hook('elsewhere', 'PostToolUse', { tool_name: 'Bash', tool_use_id: 'of-elsewhere', tool_input: { command: 'make' }, tool_response: { stdout: 'ok' } });
  await card.waitFor({ state: 'hidden' });
}, { prepare: () => asks('elsewhere', 'Bash', { command: 'make' }) });
