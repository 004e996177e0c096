// node screenshots.mjs FOLDER [COUNT…]: pictures of the pages with COUNT sessions (default: 5 and
// 50). There are pictures for a desk and a phone, in light and dark.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, live, open } from './browser.mjs';
import { Monitor, beats, call, change, crowd, lives, populate } from './monitor.mjs';

const [folder = 'screenshots', ...counts] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
const views = { desk: { viewport: { width: 1280, height: 800 } }, phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 } };

async function shoot(monitor, name, path, ready) {
  for (const [view, options] of Object.entries(views)) {
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(browser, monitor.url + path, { ...options, colorScheme });
      await live(page);
      await page.locator(ready).first().waitFor();
      await page.screenshot({ path: join(folder, `${name}-${view}-${colorScheme}.png`), fullPage: name.startsWith('session') });
      await page.context().close();
    }
  }
}

for (const count of counts.length > 0 ? counts.map(Number) : [5, 50]) {
  const monitor = await Monitor.start();
  await (count > 1000 ? crowd : populate)(monitor, count);
  await shoot(monitor, `list-${count}`, '/', `.sessions[aria-rowcount="${count + 1}"]`);
  if (count === 50) {
    await monitor.make('checkout-refactor', { agent: 'coder', task: 'Split the checkout module into payment and delivery, keep all tests green',
                                              labels: { team: 'shop', branch: 'split-checkout' }, parentSessionId: 'incident-003' });
    await monitor.make('checkout-review', { agent: 'reviewer', parentSessionId: 'checkout-refactor', task: 'Review the split' });
    await monitor.report('checkout-review', ...lives.progressing(2));
    const say = (...events) => monitor.report('checkout-refactor', ...events);
    await say({ kind: 'start' }, ...beats(2, 'planning'), change('plan_generated', { steps: 4 }));
    await say(...beats(2, 'implementation', 3), { kind: 'turn', name: 'turn_start', call_id: 'turn-12' },
              call('edit_file', 'call-1', { path: 'src/checkout.ts' }, 'turn-12'), { kind: 'tool_result', name: 'edit_file', call_id: 'call-1', text: 'ok' },
              { kind: 'wait', waiting_for: 'approval', text: 'May I delete the old module?' });
    await say({ kind: 'user_input', text: 'yes' }, change('module_split', { files: 11 }), ...beats(7, 'reflection', 5));
    await say({ kind: 'budget', name: 'update', current_step: 27, max_steps: 30, tokens: 81000, max_tokens: 200000, elapsed_seconds: 340, remaining_seconds: 260 },
              { kind: 'opinion', status: 'B', confidence: 0.7, text: 'The last seven rounds only restate the plan.' });
    await shoot(monitor, 'session-stuck', '/sessions/checkout-refactor', '.event');
    await say(call('shell', 'call-9', { command: 'npm test' }, 'turn-12'),
              { kind: 'tool_progress', name: 'shell', call_id: 'call-9', text: '212 of 480 tests', accepted: 1 });
    await shoot(monitor, 'session-running', '/sessions/checkout-refactor', '.running .tool');
  }
  await monitor.end();
}
await browser.close();
