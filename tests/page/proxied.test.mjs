// A session that nobody reports: its agent only talks to its model, through the proxy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { launch, live, open } from './browser.mjs';
import { ModelBackend } from './model_backend.mjs';
import { Monitor } from './monitor.mjs';

const scale = 100;

/** The usual loop: asks, calls the tool, tells its result, and asks again, until `more` says that it is enough. */
async function agent(base, more) {
  const messages = [{ role: 'user', content: 'CALL read_file {"path": "src/main.cpp"}\nAGAIN' }];
  while (more()) {
    const answer = await fetch(`${base}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'small', messages, stream: true }) });
    const call = { id: '', type: 'function', function: { name: '', arguments: '' } };
    for (const line of (await answer.text()).split('\n')) {
      const [piece] = line.startsWith('data: {') ? JSON.parse(line.slice(6)).choices[0]?.delta.tool_calls ?? [] : [];
      call.id = piece?.id ?? call.id;
      call.function.name += piece?.function.name ?? '';
      call.function.arguments += piece?.function.arguments ?? '';
    }
    messages.push({ role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: call.id, content: 'int main() {}' });
  }
}

test('a session known only by its requests shows its server, tokens, calls and loop', async (t) => {
  const model = await ModelBackend.start({ prompt_tokens: 61_440, prefill: 100, batch: 1_024 }, scale);
  const monitor = await Monitor.start({ WATCHDOG_PROXY_UPSTREAM: model.url, WATCHDOG_PROXY_PORT: '0', WATCHDOG_INTERNAL_TIMES: 'proxy.look_every_ms=100' });
  const browser = await launch();
  // Also where it fails: what is left open would keep this file from ending.
  t.after(async () => {
    await browser.close();
    await monitor.end();
    await model.end();
  });
  // Only of a server that is known is it asked how far it is with the prompt.
  while (!(await model.log()).some(({ target, state }) => target === '/props' && state === 'answered')) await setTimeout(20);
  let goes_on = true;
  const run = agent(`${monitor.models}/s/alone`, () => goes_on);
  const page = await open(browser, `${monitor.url}/#token=${monitor.token}`);
  await page.getByRole('link', { name: 'CALL read_file' }).waitFor();
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/proxied_list.png` });
  await page.goto(`${monitor.url}/sessions/alone`);
  await live(page);
  // No record of the stream may end the stream.
  await page.evaluate(() => {
    globalThis.looks = new Set();
    const light = document.querySelector('#live');
    new MutationObserver(() => looks.add(light.className)).observe(light, { attributes: true });
  });
  await page.getByText(/reads the prompt: [\d,]+ of 61,440 tokens \(\d+ %\)/).waitFor();
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/proxied.png`, fullPage: true });
  await model.change({ prompt_tokens: 100 });
  await page.locator('.event.tool_call .told', { hasText: 'read_file' }).first().waitFor();
  await page.locator('.now .health.looping').waitFor();
  goes_on = false;
  const { progress, labels } = await monitor.ask('/api/autonomous/progress/alone');
  assert.equal(labels.via, 'proxy');
  assert.ok(progress.heartbeats > 0);
  await page.getByLabel('Kind of event').selectOption('heartbeat');
  await page.locator('.event.heartbeat .told', { hasText: /tokens [1-9]/ }).first().waitFor();
  assert.deepEqual(await page.evaluate(() => [...looks]), []);
  assert.deepEqual(page.faults, []);
  await run;
});
