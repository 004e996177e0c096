// What the tests of the JavaScript client share: a real monitor ($WATCHDOG_MONITOR), and reporters to it.

import { after, before } from 'node:test';
import * as client from '../../clients/javascript/watchdog.js';
import { Monitor as RealMonitor } from '../page/monitor.mjs';

for (const key of Object.keys(process.env)) {
  if (/^WATCHDOG_(?!MONITOR)/.test(key)) delete process.env[key];
}
export let real;
export let server;
export let monitor;
let number = 0;
before(async () => {
  real = await RealMonitor.start();
  server = real.url;
  monitor = new client.Monitor({ server, token: real.token });
});
after(() => {
  setTimeout(() => process.exit(), 5000).unref();  // a socket that a test left open does not keep the process
  return real.end();
});

export const reporter = (options) => new client.Reporter(`s${++number}`, { server, log: null, ...options });

/** The stored events of a session, or of that of a reporter. */
export async function stored(of, kind) {
  const events = [];
  for await (const event of monitor.events(of.session ?? of, { kind })) events.push(event);
  return events;
}
