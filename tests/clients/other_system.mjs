// An agent on a system that lacks what only POSIX has: other_system.mjs SESSION win32|darwin

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [session, platform] = process.argv.slice(2);
const posix = ['getuid', 'geteuid', 'getgid', 'getegid', 'getgroups', 'setuid', 'seteuid', 'setgid', 'setegid', 'setgroups', 'initgroups'];
if (platform === 'win32') {
  for (const name of posix) process[name] = undefined;
}
Object.defineProperty(process, 'platform', { value: platform });
for (const name of ['readFileSync', 'openSync', 'readFile', 'open', 'existsSync', 'readdirSync']) {
  const real = fs[name];
  fs[name] = (path, ...more) => {
    if (/^\/(proc|sys|dev)\b/.test(String(path))) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return real(path, ...more);
  };
}
syncBuiltinESMExports();

const { Monitor, Reporter, WaitFailed } = await import('../../clients/javascript/watchdog.js');
const { TestSession } = await import('../../clients/javascript/vitest.js');
await import('../../clients/opencode/watchdog.js');

const monitor = new Monitor();
const reporter = new Reporter(session, { agent: 'agent', task: 'a task — in UTF-8' });
reporter.heartbeat(1, 'work');
reporter.toolCall('search', { query: 'ü' }, 'c1');
reporter.toolResult('search', 'found', 'c1');
reporter.stateChange('step');
reporter.end('completed');
await reporter.close();
assert.equal((await monitor.wait(session)).outcome.kind, 'completed');
const events = [];
for await (const event of monitor.events(session)) events.push(event);
assert.deepEqual(events.map(({ kind }) => kind), ['start', 'heartbeat', 'tool_call', 'tool_result', 'state_change', 'end']);
assert.equal(events[0].pid, process.pid);
assert.equal(events[0].known_by, 'connection'); // The monitor finds by itself which process holds it.

// The end of a process ends a wait for its session.
const child = spawn(process.execPath, ['-e', '']);
await assert.rejects(monitor.wait(`${session}-never`, 'completed', { child }), WaitFailed);

const test = new TestSession('a test');
const other = test.reporter();
other.stateChange('step');
other.end('completed');
await test.wait('completed');
await test.close();
console.log('ok');
