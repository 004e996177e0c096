// The real monitor, and agents that report to it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const program = process.env.WATCHDOG_MONITOR;

/** A monitor on a database of its own; `end` takes both away. */
export class Monitor {
  #folder = mkdtempSync(join(tmpdir(), 'watchdog-page-'));
  #process = null;
  url = null;
  models = null;  // where agents reach the server of WATCHDOG_PROXY_UPSTREAM

  static async start(more = {}) {
    const monitor = new Monitor();
    await monitor.serve(more);
    return monitor;
  }

  /** Again after `kill`: on the same file and port. */
  async serve(more = {}) {
    const port = this.url ? new URL(this.url).port : '0';
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(WATCHDOG|OPENAI)_/.test(name)));
    this.#process = spawn(program, ['serve', '--db', join(this.#folder, 'w.db'), '--port', port],
                          { env: { ...environment, ...more }, stdio: ['ignore', 'pipe', 'ignore'] });
    for await (const line of createInterface({ input: this.#process.stdout })) {
      this.url = line.match(/^listening on (\S+)/)?.[1] ?? this.url;
      this.models = line.match(/^agents reach their model at (\S+)\/v1 /)?.[1] ?? this.models;
      if (!line.startsWith(more.WATCHDOG_PROXY_UPSTREAM ? 'agents ' : 'open ')) continue;
      this.token = readFileSync(join(this.#folder, 'w.db-token'), 'utf8').trim().split(/\s/).at(-1);
      return;
    }
    throw new Error('the monitor does not listen');
  }

  get pid() {
    return this.#process.pid;
  }
  get database() { return join(this.#folder, 'w.db'); }

  async kill() {
    this.#process.kill('SIGKILL');
    if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, 'exit');
  }

  async end() {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async ask(path, body, method = body === undefined ? 'GET' : 'POST') {
    let response;
    do {
      response = await fetch(this.url + path, {
        method,
        body: body === undefined ? undefined : JSON.stringify(body),
        headers: this.token ? { Authorization: `Bearer ${this.token}` } : {},
      });
    } while (response.status === 503 && body?.[0]?.event_id && await response.text());
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  make(sessionId, more = {}) {
    return this.ask('/api/autonomous/sessions', { sessionId, ...more });
  }

  report(session, ...events) {
    return this.ask(`/api/autonomous/sessions/${session}/events`, events);
  }
}

export const beats = (count, phase, first = 1) =>
  Array.from({ length: count }, (_, at) => ({ kind: 'heartbeat', source: 'loop', iteration: first + at, phase }));
export const change = (type, data) => ({ kind: 'state_change', type, data });
export const call = (name, id, args, turn) => ({ kind: 'tool_call', name, call_id: id, args, ...(turn ? { turn_id: turn } : {}) });
export const result = (name, id, text) => ({ kind: 'tool_result', name, call_id: id, text });

/** What agents do, by the health that they get by it. */
export const lives = {
  progressing: (n) => [...beats(3, 'implementation'), change('plan_generated', { steps: 4 + (n % 5) }), ...beats(2, 'testing', 4),
                       change('tests_passed', { passed: 10 + n }), ...beats(1, 'testing', 6)],
  stuck: () => [change('plan_generated', { steps: 3 }), ...beats(8, 'reflection')],
  looping: () => [...beats(1, 'editing'), ...Array.from({ length: 6 }, (_, at) => [
    call('read_file', `r${at}`, { path: 'src/main.cpp' }), result('read_file', `r${at}`, 'int main() {}')]).flat()],
  blocked: () => [...beats(2, 'deploying'), change('built'), { kind: 'wait', waiting_for: 'approval', text: 'May I deploy?' }],
  starting: () => beats(2, 'planning'),
  unknown: () => [],
  completed: (n) => [...beats(2, 'implementation'), change('patched', { files: n % 7 }), { kind: 'end', outcome: 'completed' }],
  failed: () => [...beats(2, 'implementation'), change('planned'), { kind: 'end', outcome: 'failed', error: 'The compiler was killed by signal 9.' }],
  tool: (n) => [...beats(2, 'testing'), change('planned'), { kind: 'turn', name: 'turn_start', call_id: `turn-${n}` },
                call('shell', `c${n}`, { command: 'ninja test' }, `turn-${n}`),
                { kind: 'tool_progress', name: 'shell', call_id: `c${n}`, text: `${n % 90} of 90 tests`, accepted: 1 }],
};

const agents = ['planner', 'coder', 'reviewer', 'researcher'];
const tasks = ['Repair the flaky tests of the parser', 'Move the build to C++20', 'Summarise the incident of Tuesday',
               'Write the release notes', 'Find out why the cache is cold after a deploy', 'Translate the manual'];
const names = ['parser', 'build', 'incident', 'release', 'cache', 'manual'];

/** `count` sessions, most of them well. */
export async function populate(monitor, count, lot = ['progressing', 'tool', 'progressing', 'stuck', 'blocked', 'completed', 'progressing',
  'looping', 'progressing', 'tool', 'progressing', 'completed', 'starting', 'progressing', 'progressing', 'failed', 'progressing',
  'progressing', 'unknown', 'progressing']) {
  const one = async (n) => {
    const id = `${names[n % names.length]}-${String(n + 1).padStart(3, '0')}`;
    const spec = { agent: agents[(n * 7 + (n >> 3)) % agents.length], task: tasks[n % tasks.length], labels: { team: n % 2 ? 'infra' : 'apps' } };
    if (n % 10 === 9) spec.parentSessionId = `${names[(n - 1) % names.length]}-${String(n).padStart(3, '0')}`;
    await monitor.make(id, spec);
    const life = lives[lot[n % lot.length]](n);
    if (life.length > 0) await monitor.report(id, ...life);
  };
  await inLanes(count, 32, one);
}

/** So many sessions as fast as may be: each in one request of few events. */
export async function crowd(monitor, count) {
  const lot = [...Array(7).fill([...beats(1, 'testing'), change('begun')]), beats(6, 'reflection'),
               [...beats(1, 'deploying'), { kind: 'wait', waiting_for: 'approval' }], [{ kind: 'end', outcome: 'completed' }]];
  await inLanes(count, 128, (n) =>
    monitor.report(`crowd-${n}`, ...lot[n % lot.length].map((event, at) => ({ ...event, event_id: `${at}` }))));
}

async function inLanes(count, lanes, one) {
  let next = 0;
  await Promise.all(Array.from({ length: lanes }, async () => {
    while (next < count) await one(next++);
  }));
}
