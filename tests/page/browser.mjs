// Debian's Chromium, and pages in which nothing may go wrong unnoticed.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, extname, join } from 'node:path';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});

// With this folder, pages get their scripts and styles from it, not from the program: a change shows without a build.
const files = process.env.WATCHDOG_DASHBOARD;
const types = { '.js': 'text/javascript', '.css': 'text/css' };

async function serveFiles(route) {
  const file = join(files, basename(new URL(route.request().url()).pathname));
  if (!types[extname(file)] || !existsSync(file)) return route.fallback();
  await route.fulfill({ body: readFileSync(file), contentType: `${types[extname(file)]}; charset=utf-8` });
}

/** A page that gathers what went wrong in it: in `page.faults`. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  if (files) await context.route('**/assets/**', serveFiles);
  context.setDefaultTimeout(120_000);  // a busy machine shows everything later
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(String(error)));
  page.on('console', (message) => {
    const text = message.text();
    // The console shows failed requests too. The code that sent them deals with them.
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) page.faults.push(text);
  });
  if (options.javaScriptEnabled !== false) {
    await page.addInitScript(() => {
      globalThis.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
  }
  await page.goto(url);
  return page;
}

/** It is connected, and shows what there was before. */
export async function live(page) {
  await page.locator('#live.live').waitFor();
  await page.locator('#main:not([aria-busy])').waitFor();
}

/** All that axe-core finds, with the rules that are off by default and named here. */
export async function violations(page, ...more) {
  // By the debugger: the page itself allows no foreign script.
  await page.evaluate(axe);
  const rules = Object.fromEntries(more.map((rule) => [rule, { enabled: true }]));
  return (await page.evaluate((asked) => globalThis.axe.run(document, { resultTypes: ['violations'], rules: asked }), rules)).violations;
}

/** What axe-core finds serious or critical, in words. */
export async function barriers(page) {
  return inWords((await violations(page)).filter(({ impact }) => ['serious', 'critical'].includes(impact)));
}

export const inWords = (found) => found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 5).map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`);
