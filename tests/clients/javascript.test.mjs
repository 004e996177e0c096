// The JavaScript client against a real monitor ($WATCHDOG_MONITOR), and against what is none.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as listen } from 'node:net';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { TestSession, matchers } from '../../clients/javascript/vitest.js';
import * as client from '../../clients/javascript/watchdog.js';
import { Monitor as RealMonitor } from '../page/monitor.mjs';
import { monitor, real, reporter, server, stored } from './javascript_case.mjs';

const { Cancelled, Monitor, Reporter, WaitFailed, wait } = client;
const library = new URL('../../clients/javascript/', import.meta.url);
const run = promisify(execFile);

const failing = (end, text) => (error) => {
  assert.ok(error instanceof WaitFailed, error.stack);
  assert.equal(error.end, end, error.message);
  assert.match(error.message, text);
  return true;
};

/** Answers reports with the next of `answers`, the last over and over; one with a change called `poison` with `poisoned`. */
class FalseMonitor {
  batches = [];

  constructor(answers = [200], poisoned = 400, body = '{"directive":null}') { Object.assign(this, { answers, poisoned, body }); }

  async start() {
    this.http = createServer((request, response) => {
      let body = '';
      request.on('data', (piece) => { body += piece; });
      request.on('end', () => {
        if (!request.url.endsWith('/events')) return response.end('{}');
        const events = JSON.parse(body);
        const poisoned = events.some(({ type }) => type === 'poison');
        const answer = poisoned ? this.poisoned : this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        if (answer === 'garbage') return request.socket.end('\0\x01 this is no HTTP');
        if (answer === 'html') return response.end('<html>');
        if (!poisoned && answer !== 503) this.batches.push(events);
        response.writeHead(answer).end(this.body);
      });
    }).listen(0, '127.0.0.1');
    await once(this.http, 'listening');
    this.server = `http://127.0.0.1:${this.http.address().port}`;
    return this;
  }

  end() {
    this.http.closeAllConnections();
    this.http.close();
  }
}

describe('reports', () => {
  test('what is reported is what the monitor shows', async () => {
    const one = reporter({ agent: 'planner', task: 'to plan', labels: { team: 'tools' } });
    const found = await one.run(async () => {
      one.heartbeat(1, 'reflection', { counters: { tokens: 7 }, expectQuietMs: 2000 });
      const result = await one.tool('search', { query: 'x' }, (call) => {
        call.progress('half', { value: 1, total: 2 });
        return { found: 3 };
      }, { deadlineMs: 600_000 });
      await assert.rejects(one.tool('broken', null, () => { throw new RangeError('no'); }), RangeError);
      one.stateChange('plan_generated', { steps: 4 });
      one.count({ tokens: 5 });
      one.count({ tokens: 6 });
      one.message('assistant', 'done');
      one.waitFor('quota', 'used up', new Date(1_900_000_000_000));
      one.report('budget', { current_step: 3, max_steps: 10 });
      return result;
    });
    assert.deepEqual(found, { found: 3 });
    const progress = await monitor.progress(one.session);
    assert.equal(progress.outcome.kind, 'completed');
    assert.deepEqual([progress.agent, progress.task, progress.labels], ['planner', 'to plan', { team: 'tools' }]);
    assert.deepEqual([progress.currentPhase, progress.iteration, progress.budget.currentStep], ['reflection', 1, 3]);
    const events = await stored(one);
    assert.deepEqual(events.map(({ kind }) => kind), ['start', 'heartbeat', 'tool_call', 'tool_progress', 'tool_result', 'tool_call',
                                                     'error', 'state_change', 'message', 'wait', 'budget', 'heartbeat', 'end']);
    assert.equal(events[0].pid, process.pid);
    assert.ok(events[0].start_ticks > 0);
    assert.equal(events[6].text, 'RangeError: no');
    assert.deepEqual(events[11].counters, { tokens: 11 });
    assert.deepEqual([events[9].waiting_for, events[9].until_ms], ['quota', 1_900_000_000_000]);
  });

  test('what is thrown fails the session and goes on', async () => {
    const one = reporter();
    await assert.rejects(one.run(() => { throw new Error('boom'); }), /boom/);
    const { outcome } = await monitor.progress(one.session);
    assert.deepEqual([outcome.kind, outcome.error], ['failed', 'Error: boom']);
  });

  test('a cancel is heard by an agent that is silent, and by what it waits for', async () => {
    let asked;
    const one = reporter({ interval: 50, onCancel: (cancel) => { asked = cancel; throw new Error('a callback'); } });
    await one.flush();
    const ended = one.run(() => one.tool('sleep', {}, ({ signal }) => new Promise((_, fail) => {
      signal.addEventListener('abort', () => fail(signal.reason));
    })));
    await monitor.cancel(one.session, { reason: 'enough', by: 'ann' });
    await assert.rejects(ended, (error) => error instanceof Cancelled && /ann: enough/.test(error.message));
    assert.equal(asked.by, 'ann');
    assert.ok(one.cancelled && one.signal.aborted);
    const { outcome } = await monitor.progress(one.session);
    assert.deepEqual([outcome.kind, outcome.subject], ['cancelled', 'ann']);
  });

  test('one call is aborted alone', async () => {
    const one = reporter({ interval: 50 });
    one.report('turn', { name: 'turn_start', call_id: `turn-${one.session}` });
    const turnId = `turn-${one.session}`;
    const until = ({ signal }) => new Promise((done) => { signal.addEventListener('abort', () => done('stopped')); });
    const first = one.tool('a', {}, until, { callId: 'c1', turnId });
    let other = null;
    one.tool('b', {}, (call) => { other = call; return until(call); }, { callId: 'c2', turnId });
    await one.flush();
    await monitor.ask('POST', `/api/turns/${turnId}/abort-tool/c1`, {});
    assert.equal(await first, 'stopped');
    assert.equal(other.signal.aborted, false);
    await one.close();
  });

  test('a call over its deadline is aborted, unless it makes progress', async () => {
    const one = reporter();
    const until = ({ signal }) => new Promise((done) => { signal.addEventListener('abort', () => done(signal.reason.name)); });
    assert.equal(await one.tool('hang', {}, until, { deadlineMs: 20 }), 'TimeoutError');
    let steps = 0;
    const moves = async (call) => {
      for (; steps < 5; ++steps) {
        call.progress(`step ${steps}`);
        await new Promise((done) => { setTimeout(done, 10); });
      }
      return call.signal.aborted;
    };
    assert.equal(await one.tool('moves', {}, moves, { deadlineMs: 30_000 }), false);
    await one.close();
  });

  test('content that is no JSON or no text or huge arrives as what can be said of it', async () => {
    const circle = [];
    circle.push(circle);
    const contents = [NaN, new Uint8Array([255, 254]), '\ud800 \\ud800', { '\udc00': '\ud83d\ude00' }, circle, 10n, Symbol('s'), () => 1, undefined,
                      { toJSON() { throw new Error('no'); } }, Object.create(null), JSON.parse('['.repeat(80) + ']'.repeat(80)), 'q'.repeat(3 << 20)];
    const one = reporter({ content: 'full', interval: 0 });
    contents.forEach((data, at) => one.stateChange(`c${at}`, data));
    one.stateChange('n'.repeat(5000));
    one.stateChange(null);
    one.heartbeat('seven');
    one.heartbeat(1, 'ü'.repeat(5000));
    one.completed();
    assert.ok(await one.flush());
    assert.equal(one.rejected, 2);  // A change without a name, and an iteration that is not a number.
    const changes = await stored(one, 'state_change');
    assert.deepEqual(changes.slice(0, -1).map(({ type }) => type), contents.map((_, at) => `c${at}`));
    assert.equal(changes[1].data, '\u00ff\u00fe');  // Other bytes are another text.
    assert.equal(changes[2].data, '\ufffd \\ud800');
    assert.deepEqual(changes[3].data, { '\ufffd': '\ud83d\ude00' });
    assert.match(changes[12].data, /q… \(3145728 characters\)$/);
    await one.close();
  });

  test('a process tells all before it exits, and one without a monitor is not held', async () => {
    const script = `import { Reporter } from '${library}watchdog.js';
      const one = new Reporter('exits'); for (let at = 0; at < 1200; ++at) one.stateChange('s' + at);`;
    const env = { PATH: process.env.PATH, WATCHDOG_SERVER: server };
    await run(process.execPath, ['--input-type=module', '-e', script], { env });
    assert.equal((await stored({ session: 'exits' }, 'state_change')).length, 1200);
    await run(process.execPath, ['--input-type=module', '-e', script], { env: { ...env, WATCHDOG_SERVER: 'http://127.0.0.1:1' } });
  });
});

describe('waits', () => {
  test('it is over the moment the session ends', async () => {
    const one = reporter();
    await one.flush();
    const ended = monitor.wait(one.session);
    one.heartbeat(1, 'work');
    one.completed();
    assert.equal((await ended).outcome.kind, 'completed');
    assert.equal((await monitor.wait(one.session, 'end')).currentPhase, 'work');
    await one.close();
  });

  test('a session that is not there yet is waited for', async () => {
    const ended = monitor.wait('late');
    await monitor.progress('absent').catch(() => {});
    const one = new Reporter('late', { server, log: null });
    one.completed();
    assert.equal((await ended).lifecycle, 'completed');
    await one.close();
  });

  test('healths, changes and conditions are waited for', async () => {
    const one = reporter();
    one.stateChange('planned');
    one.waitFor('approval');
    assert.equal((await monitor.wait(one.session, 'health=blocked')).waitingFor, 'approval');
    const { lastSeq } = await monitor.wait(one.session, 'state-change=planned');
    const called = monitor.wait(one.session, 'state-change=tool_call', { after: lastSeq });
    await one.tool('t', {}, () => 'r');
    await called;
    const seventh = monitor.wait(one.session, async ({ iteration }) => iteration === 7);
    one.heartbeat(7, 'last');
    assert.equal((await seventh).currentPhase, 'last');
    await one.close();
  });

  test('an end of another kind is told with what happened', async () => {
    const one = reporter({ interval: 0 });
    for (let step = 0; step < 40; ++step) {
      one.heartbeat(step, 'edit');
      one.stateChange('edited', { step });
    }
    one.failed('the compiler was killed', 'task_failed');
    await one.close();
    await assert.rejects(monitor.wait(one.session), failing('ended', new RegExp(
      `^session ${one.session}: it ended as failed instead\n  expected  completed\n  last      failed \\(task_failed\\): the compiler was killed; ` +
      'its health was progressing .*\n  ended as  ended\n  timeline  4\\d entries, 40 heartbeats besides\n +0.000 s  start process \\d+\n[^]*\n +…  2\\d omitted\n[^]*' +
      's  end failed \\(task_failed\\): the compiler was killed$')));
    await assert.rejects(monitor.wait(one.session, 'health=stuck'), failing('ended', /it ended as failed instead/));
  });

  test('what stays stuck fails after three further iterations unless told otherwise', async () => {
    const one = reporter();
    let stop = false;
    one.stateChange('begun');
    const spinning = (async () => {
      for (let iteration = 0; !stop; ++iteration) {
        one.heartbeat(iteration, 'loop');
        await one.flush();
      }
    })();
    await assert.rejects(monitor.wait(one.session), failing('stuck', /it has been stuck for \d+ further iterations \(limit 3\)\n/));
    const asked = [];
    await assert.rejects(monitor.wait(one.session, 'completed', { onStuck: ({ iteration }) => asked.push(iteration) < 3 }),
                         failing('user_cancelled_stuck', /the person who was asked chose not to continue/));
    assert.equal(asked.length, 3);
    assert.ok(asked[0] < asked[1] && asked[1] < asked[2], asked);  // of documents that are newer than the count
    await monitor.wait(one.session, ({ iteration }) => iteration > asked[2] + 10, { onStuck: 'keep' });
    stop = true;
    await spinning;
    await one.close();
  });

  test('a process that is gone or never came ends the wait', async () => {
    const watched = new TestSession('vanishes');
    watched.monitor = monitor;
    watched.start('/absent');
    await assert.rejects(watched.wait(), failing('no_session', /could not be started \(spawn \/absent ENOENT\)/));
    watched.start('false');
    await assert.rejects(watched.wait(), failing('no_session', /exited with 1 without having reported anything/));
    const child = watched.start('sleep', ['100']);
    const one = watched.reporter({ server });
    one.heartbeat(1);
    const starting = watched.wait('health=starting').then(() => child.kill());
    await assert.rejects(watched.wait(), failing('dead', /its process was ended by SIGTERM, and the session has not ended/));
    await starting;
    await watched.close();
  });

  test('a wait is called off by its signal, and says what it waited for', async () => {
    const one = reporter();
    await one.flush();
    const stop = new AbortController();
    const waiting = monitor.wait(one.session, 'completed', { signal: stop.signal, seen: () => stop.abort(new Error('the test is over')) });
    await assert.rejects(waiting, failing('interrupted', /called off: the test is over\n  expected  completed/));
    await one.close();
  });

  test('a signal from an outer limit is answered with what was waited for', async () => {
    const one = reporter();
    one.stateChange('begun');
    await one.flush();
    const script = `import { wait } from '${library}watchdog.js'; await wait('${one.session}', 'completed', { seen: () => console.log('seen') });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { env: { WATCHDOG_SERVER: server } });
    let text = '';
    child.stderr.on('data', (piece) => { text += piece; });
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    const [, signal] = await once(child, 'close');
    assert.equal(signal, 'SIGTERM');
    assert.match(text, /ended as {2}interrupted[^]*state_change begun/);
    await one.close();
  });

  test('misuse is a type error, and what a condition throws comes through', async () => {
    for (const what of ['done', 'health=happy', 'health', '', 'state-change=', null]) await assert.rejects(monitor.wait('x', what), TypeError, `${what}`);
    await assert.rejects(monitor.wait('x', 'completed', { onStuck: 'ask' }), TypeError);
    await assert.rejects(monitor.wait('a b'), TypeError);
    const one = reporter();
    await one.flush();
    await assert.rejects(monitor.wait(one.session, () => { throw new RangeError('mine'); }), RangeError);
    await one.close();
  });

  test('what is no monitor, and none at all, is told at once', async () => {
    await assert.rejects(wait('x', 'completed', { server: 'http://127.0.0.1:1' }), failing('unavailable', /bad port/));
    const closed = listen().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const url = `http://127.0.0.1:${closed.address().port}`;
    await new Promise((done) => { closed.close(done); });
    await assert.rejects(wait('x', 'completed', { server: url }), failing('unavailable', /watchdog-monitor serve/));
    const other = await new FalseMonitor().start();
    await assert.rejects(wait('x', 'completed', { server: other.server }), failing('refused', /./));
    other.end();
  });

  test('matchers pass, and fail with the timeline', async () => {
    const one = reporter();
    one.failed('boom');
    await one.close();
    const watched = { wait: (...what) => monitor.wait(one.session, ...what) };
    assert.equal((await matchers.toBecome.call({}, watched, 'failed')).pass, true);
    const result = await matchers.toComplete.call({}, watched);
    assert.equal(result.pass, false);
    assert.match(result.message(), /timeline[^]*end failed \(error\): boom/);
    await assert.rejects(matchers.toComplete.call({ isNot: true }, watched), TypeError);
  });
});

describe('values', () => {
  class Private {
    #number;
    constructor(number) { this.#number = number; }
    get number() { return this.#number; }
  }
  class Derived extends Private { kind = 'derived'; }
  class Queue extends Array { #number = Queue.next; static next; }
  class Point { constructor(x) { this.x = x; } }
  const ring = (number) => {
    const one = { number, inner: [] };
    one.inner.push({ up: one });
    return one;
  };
  const opaque = [(n) => new Private(n), (n) => new Derived(n), (n) => ({ x: [new Private(n)] }), (n) => Promise.resolve(n), (n) => new Response(`${n}`), (n) => new WeakMap([[{}, n]]),
                  (n) => [n].values(), (n) => () => n, (n) => new Map([[1, new Private(n)]]), () => ({ toJSON() { throw new Error('no'); } }), (n) => new DataView(new Uint8Array([n]).buffer),
                  (n) => ({ id: 1, read: () => n }), (n) => [() => n], (n) => ({ x: { [Symbol('n')]: n } }), (n) => Object.defineProperty({ id: 1 }, 'n', { value: n }),
                  (n) => Object.assign([1], { n }), (n) => { Queue.next = n; return [new Queue()]; }];
  const exact = [(n) => new Map([[n, n]]), (n) => new Set([n]), (n) => ({ id: BigInt(n) }), (n) => new Error(`no ${n}`), (n) => new Error('no', { cause: new Point(n) }),
                 (n) => Object.assign(new Error('no'), { code: n }), ring, (n) => new Point(n), (n) => ({ x: n === 1 ? NaN : Infinity }), (n) => new Uint8Array([255, n]),
                 (n) => [new Uint8Array([255, n])], (n) => new Uint8Array([255, n]).buffer, (n) => new RegExp(`${n}`), (n) => new URLSearchParams({ n }), (n) => new URL(`http://a/${n}`),
                 (n) => new Date(n), (n) => Buffer.from([n]), (n) => new Float64Array([n]), (n) => 10n ** BigInt(n), (n) => Symbol(n), (n) => [new Number(n)],
                 (n) => new AggregateError([new Error(n)], 'all'), (n) => Object.assign(Object.create(null), { n }), (n) => ({ at: new Date(n), again: [ring(n), ring(n)] }), (n) => [, n], (n) => ({ n, nothing: undefined })];
  async function asStored(values) {
    const one = reporter({ content: 'full', interval: 0 });
    for (const value of values) one.stateChange('x', value);
    one.completed();
    assert.ok(await one.close());
    assert.equal(one.rejected, 0);
    return (await stored(one, 'state_change')).map(({ data }) => JSON.stringify(data));
  }

  test('values that cannot be printed are never equal', async () => {
    for (const make of opaque) {
      const one = make(1);
      const found = await asStored([one, one, make(1), make(2)]);
      assert.equal(new Set(found).size, 4, found.join('\n'));
    }
  });

  test('values that can be printed are equal if they are', async () => {
    for (const make of exact) {
      const [one, same, other] = await asStored([make(1), make(1), make(2)]);
      assert.equal(one, same);
      assert.notEqual(one, other);
    }
  });

  test('they are printed as data, and errors with their causes', async () => {
    const found = await asStored([new Map([['a', { b: 1n }]]), new Set([1]), new Error('effect', { cause: new RangeError('cause') }), ring(7)]);
    assert.deepEqual(found.map((one) => JSON.parse(one)), [
      [['a', { b: '1' }]], [1], { error: 'Error: effect', cause: { error: 'RangeError: cause' } }, { number: 7, inner: [{ up: '[circle: 3 up]' }] }]);
    const one = reporter();
    await assert.rejects(one.tool('t', {}, () => { throw new Error('effect', { cause: new RangeError('cause') }); }));
    await one.close();
    assert.equal((await stored(one, 'error'))[0].text, 'Error: effect, caused by RangeError: cause');
  });

  test('no loop is seen in what nobody can compare', async () => {
    const rounds = async (make, isResult) => {
      const one = reporter({ interval: 0 });
      for (let round = 0; round < 14; ++round) {
        one.heartbeat(round, 'poll');
        await one.tool('poll', isResult ? {} : make(round), () => (isResult ? make(round) : 'ok'));
      }
      one.completed();
      await one.close();
      return JSON.stringify(await monitor.ask('GET', `/api/autonomous/sessions/${one.session}/transitions`));
    };
    const map = (n) => new Map([[n, n]]);
    const bigint = (n) => ({ id: BigInt(n) });
    const error = (n) => new Error(`no ${'abcdefghijklmn'[n]}`);
    for (const make of [...opaque, map, bigint, error]) {
      for (const isResult of [true, false]) assert.doesNotMatch(await rounds(make, isResult), /looping/, `${make} ${isResult}`);
    }
    assert.match(await rounds(() => new Map([[1, 1]]), true), /looping/);
  });
});

describe('several reporters', () => {
  const program = async (session, lines) => {
    const script = `import { Cancelled, Reporter } from '${library}watchdog.js';\n${lines}`;
    await run(process.execPath, ['--input-type=module', '-e', script], { env: { WATCHDOG_SERVER: server, WATCHDOG_SESSION: session } });
    const events = await stored({ session });
    assert.deepEqual(events.filter(({ kind }) => kind === 'end').map(({ outcome }) => outcome), ['completed']);
    assert.ok(!events.some(({ late }) => late));
    return events.filter(({ kind }) => kind === 'state_change').map(({ type }) => type);
  };

  test('a second one without a name has a child session', async () => {
    const changes = await program('family', `
      await new Reporter(null, { agent: 'outer' }).run(async (outer) => {
        await new Reporter(null, { agent: 'inner' }).run((inner) => inner.stateChange('inner'));
        outer.stateChange('after');
      });`);
    assert.deepEqual(changes, ['after']);
    const { sessions } = await monitor.ask('GET', '/api/autonomous/sessions?limit=1000');
    const child = sessions.find(({ sessionId }) => sessionId.startsWith('family-inner-'));
    assert.deepEqual([child.parentSessionId, child.lifecycle], ['family', 'completed']);
    assert.deepEqual((await stored({ session: child.sessionId }, 'state_change')).map(({ type }) => type), ['inner']);
  });

  test('one after the other has the same session', async () => {
    const script = `for (const type of ['one', 'two']) await new Reporter().run((reporter) => reporter.stateChange(type));`;
    await run(process.execPath, ['--input-type=module', '-e', `import { Reporter } from '${library}watchdog.js';\n${script}`],
              { env: { WATCHDOG_SERVER: server, WATCHDOG_SESSION: 'in-turn' } });
    assert.deepEqual((await stored({ session: 'in-turn' }, 'state_change')).map(({ type }) => type), ['one', 'two']);
  });

  test('a second one of the same name does not end what the first one runs', async () => {
    const changes = await program('same', `
      await new Reporter('same').run(async (outer) => {
        const inner = new Reporter('same');
        inner.stateChange('inner');
        inner.failed(new Error('no'));
        await inner.close();
        outer.stateChange('after');
      });`);
    assert.deepEqual(changes, ['inner', 'after']);
    assert.match((await stored({ session: 'same' }, 'message'))[0].text, /reports no more: failed Error: no/);
  });

  test('a program that an agent starts has a child session while that of the agent is open', async () => {
    const changes = await program('started', `
      import { spawnSync } from 'node:child_process';
      const start = (name) => spawnSync(process.execPath, ['--input-type=module', '-e', \`import { Reporter } from '${library}watchdog.js';
        await new Reporter(\${JSON.stringify(name)}, { agent: 'worker' }).run((reporter) => reporter.stateChange('worker'))\`]);
      await new Reporter().run(async (outer) => {
        for (const name of [null, 'started']) start(name);
        outer.stateChange('after');
      });
      if (process.env.WATCHDOG_REPORTER) throw new Error('it is still open');`);
    assert.deepEqual(changes, ['worker', 'after']);
    const { sessions } = await monitor.ask('GET', '/api/autonomous/sessions?limit=1000');
    const child = sessions.find(({ sessionId }) => sessionId.startsWith('started-worker-'));
    assert.deepEqual([child.parentSessionId, child.lifecycle], ['started', 'completed']);
  });

  test('a worker thread does not end the session of its parent', async () => {
    const changes = await program('threads', `
      import { once } from 'node:events';
      import { Worker } from 'node:worker_threads';
      await new Reporter().run(async (outer) => {
        for (const name of [null, 'threads']) {
          const worker = new Worker(\`import('${library}watchdog.js').then(({ Reporter }) =>
            new Reporter(\${JSON.stringify(name)}, { agent: 'worker' }).run((reporter) => reporter.stateChange('worker')))\`, { eval: true });
          await once(worker, 'exit');
        }
        outer.stateChange('after');
      });`);
    assert.deepEqual(changes, ['worker', 'after']);
    const { sessions } = await monitor.ask('GET', '/api/autonomous/sessions?limit=1000');
    const child = sessions.find(({ sessionId }) => sessionId.startsWith('threads-worker-'));
    assert.deepEqual([child.parentSessionId, child.lifecycle], ['threads', 'completed']);
  });

  test('each event has the time at which it was reported, and a thrown Cancelled is cancelled', async () => {
    const away = await new FalseMonitor([503]).start();
    const one = new Reporter('away', { server: away.server, interval: 0, log: null });
    await one.tool('slow', {}, () => new Promise((done) => { setTimeout(done, 300); }));
    one.heartbeat(1, 'work');
    one.report('message', { name: 'user', text: 'x', ts_ms: 5 });
    away.answers[0] = 200;
    await assert.rejects(one.run(() => { throw new Cancelled({ by: 'ann', reason: 'enough' }); }), Cancelled);
    await one.close();
    const events = away.batches.flat();
    assert.deepEqual(events.map(({ kind }) => kind), ['start', 'tool_call', 'tool_result', 'heartbeat', 'message', 'end']);
    assert.equal(events[5].outcome, 'cancelled');
    const times = events.map(({ ts_ms }) => ts_ms);
    assert.deepEqual(times.splice(4, 1), [5]);
    assert.deepEqual(times, [...times].sort((a, b) => a - b));
    assert.ok(times[2] - times[1] >= 295, times);
    away.end();
  });
});

describe('mistakes', () => {
  const wrong = [
    ['stat_change', { type: 'x' }, 'kind of event', 'state_change'], ['', {}, 'kind of event', null], [null, {}, 'kind of event', null],
    ['wait', { waiting_for: 'quota', until: 5 }, 'field of the event wait', 'until_ms'],
    ['wait', { waiting_for: 'quota', deadline_ms: 5 }, 'field of the event wait', null],
    ['budget', { max_step: 5, current_step: 1 }, 'field of the event budget', 'max_steps'],
    ['budget', { currentStep: null }, 'field of the event budget', 'current_step'],
    ['tool_call', { name: 't', arg: {} }, 'field of the event tool_call', 'args'],
    ['message', { name: 'user', tekst: 't' }, 'field of the event message', 'text'],
  ];
  const kinds = JSON.parse(readFileSync(new URL('../../schemas/event.schema.json', import.meta.url), 'utf8')).properties.kind.examples;

  test('a strict reporter throws a wrong word with the nearest and all right ones', async () => {
    const one = reporter({ strict: true });
    for (const [kind, fields, what, near] of wrong) {
      assert.throws(() => one.report(kind, fields), (error) => {
        assert.ok(error instanceof TypeError);
        assert.ok(error.message.includes(`is not a ${what}`), error.message);
        if (near) assert.ok(error.message.includes(`Did you mean "${near}"? `), error.message);
        const right = error.message.split('The right words are ')[1];
        for (const word of kinds.includes(kind) ? ['event_id'] : kinds) assert.ok(right.includes(word), word);
        if (kind === 'budget') assert.match(right, /stage.*max_tool_calls.*max_cost/);
        return true;
      });
    }
    one.report('budget', { current_step: 3, max_steps: 10, tokens: 5, max_cost: 2.5, stage: 'low' });
    one.report('turn', { name: 'turn_start', call_id: 't1', depth: 0 });
    one.completed();
    assert.ok(await one.close());
    assert.deepEqual((await stored(one)).map(({ kind }) => kind), ['start', 'budget', 'turn', 'end']);
  });

  test('a wrong word is said once in a process on standard error, and the rest of the report arrives', async () => {
    const script = `import { Reporter } from '${library}watchdog.js';
      for (const session of ['wrong-a', 'wrong-b']) {
        const one = new Reporter(session);
        for (const [kind, fields] of ${JSON.stringify([...wrong, ...wrong])}) one.report(kind, fields);
        one.completed();
        await one.close();
      }
      console.log('goes on');`;
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', script], { env: { WATCHDOG_SERVER: server } });
    assert.equal(stdout, 'goes on\n');
    const lines = stderr.trim().split('\n');
    assert.equal(lines.filter((line) => line.includes('The right words are')).length, wrong.length, stderr);
    assert.equal(lines.filter((line) => line.includes('"stat_change"')).length, 1, stderr);
    assert.equal(new Set(lines).size, lines.length, stderr);
    assert.equal((await stored({ session: 'wrong-b' }, 'budget')).length, 4);
  });

  test('a hint or refusal of the monitor is said once, and thrown by a strict reporter', async () => {
    const hinting = await new FalseMonitor([200], 400, '{"directive":null,"hint":"unknown member until of a wait"}').start();
    const lines = [];
    for (const session of ['a', 'b']) {
      const one = new Reporter(session, { server: hinting.server, interval: 0, log: (line) => lines.push(line) });
      one.stateChange('x');
      assert.ok(await one.close());
    }
    assert.equal(lines.filter((line) => line.includes('unknown member until')).length, 1, lines);
    const strict = () => new Reporter('c', { server: hinting.server, interval: 0, log: null, strict: true });
    await assert.rejects(strict().run(() => 1), /unknown member until/);
    assert.equal(hinting.batches.flat().filter(({ kind, outcome }) => kind === 'end' && outcome === 'completed').length, 1);
    await assert.rejects(strict().run(() => { throw new RangeError('first'); }), RangeError);
    const one = reporter({ strict: true });
    one.heartbeat('seven');
    await assert.rejects(one.flush(), /a report was not understood/);
    assert.ok(await one.close());
    hinting.end();
  });
});

describe('bad monitors', () => {
  test('nothing acknowledged is lost or doubled over crashes of the monitor', async () => {
    const crashing = await RealMonitor.start();
    const one = new Reporter('survivor', { server: crashing.url, interval: 0, log: null });
    let seen;
    const first = new Promise((done) => { seen = done; });
    const ended = new Monitor({ server: crashing.url }).wait('survivor', 'completed', { seen: () => seen() });
    await first;
    const expected = [];
    const say = (type) => { expected.push(type); one.stateChange(type); };
    for (let crash = 0; crash < 3; ++crash) {
      for (let step = 0; step < 200; ++step) say(`${crash}-${step}`);
      await crashing.kill();
      say(`${crash}-absent`);
      await crashing.serve();
      assert.ok(await one.flush());
    }
    one.completed();
    assert.ok(await one.close());
    assert.equal((await ended).lifecycle, 'completed');
    const types = [];
    for await (const { type } of new Monitor({ server: crashing.url }).events('survivor', { kind: 'state_change' })) types.push(type);
    assert.deepEqual(types, expected);
    assert.deepEqual([one.dropped, one.rejected], [0, 0]);
    await crashing.end();
  });

  test('a full queue gives up heartbeats first and ends never', async () => {
    const full = await new FalseMonitor([503]).start();
    const one = new Reporter('full', { server: full.server, queueMax: 1000, interval: 0, log: null });
    for (let step = 0; step < 700; ++step) {
      one.heartbeat(step, `phase ${step}`);
      one.stateChange(`s${step}`);
    }
    assert.ok(one.dropped > 300, one.dropped);
    one.completed();
    for (let step = 0; step < 10_000; ++step) one.heartbeat(step, 'after');
    full.answers[0] = 200;
    assert.ok(await one.flush());
    const events = full.batches.flat();
    assert.deepEqual(events.filter(({ kind }) => kind === 'state_change').map(({ type }) => type), Array.from({ length: 700 }, (_, step) => `s${step}`));
    assert.equal(events.filter(({ kind }) => kind === 'start' || kind === 'end').length, 2);
    assert.match(events.filter(({ kind }) => kind === 'message').map(({ text }) => text).join(), /\d+ reports were dropped/);
    await one.close();
    full.end();
  });

  test('who refuses is asked again with the same ids', async () => {
    for (const status of [401, 404, 429, 500, 503, 'garbage', 'html']) {
      const refusing = await new FalseMonitor([status, 200]).start();
      const one = new Reporter('refused', { server: refusing.server, interval: 0, refusedPause: 1, log: null });
      one.completed();
      assert.ok(await one.close(), `${status}`);
      assert.equal(refusing.batches[0][0].event_id, refusing.batches.at(-1)[0].event_id);
      assert.equal(one.rejected, 0);
      refusing.end();
    }
  });

  test('what is too large or malformed is found and left out', async () => {
    for (const status of [400, 413, 422]) {
      const choosy = await new FalseMonitor([200], status).start();
      const one = new Reporter('poison', { server: choosy.server, interval: 0, log: null });
      for (let step = 0; step < 100; ++step) one.stateChange(step === 37 ? 'poison' : `s${step}`);
      assert.ok(await one.close());
      const types = choosy.batches.flat().filter(({ kind }) => kind === 'state_change').map(({ type }) => type);
      assert.deepEqual(types, Array.from({ length: 100 }, (_, step) => `s${step}`).filter((_, step) => step !== 37));
      assert.equal(one.rejected, 1);
      choosy.end();
    }
  });

  test('a monitor that never answers or is not there costs the agent nothing', async () => {
    const mute = listen((socket) => socket.unref()).listen(0, '127.0.0.1').unref();
    await once(mute, 'listening');
    for (const bad of [`http://127.0.0.1:${mute.address().port}`, 'http://127.0.0.1:1', 'http://name.invalid', 'nonsense://[', '']) {
      const one = new Reporter('mute', { server: bad, log: () => { throw new Error('a log'); } });
      for (let step = 0; step < 1000; ++step) one.heartbeat(step, 'work');
      one.completed();
      assert.equal(await one.close(1), bad === '');
    }
    mute.close();
  });
});

test('it reports and waits where calls of POSIX are missing', async () => {
  for (const platform of ['darwin', 'win32']) {
    const words = [new URL('other_system.mjs', import.meta.url).pathname, `on-${platform}`, platform];
    const { stdout } = await run(process.execPath, words, { env: { ...process.env, WATCHDOG_SERVER: server, WATCHDOG_TOKEN: real.token } });
    assert.equal(stdout, 'ok\n');
  }
});

test('the example of the documentation runs', async () => {
  const text = readFileSync(new URL('../../docs/how-to/report-from-code.md', import.meta.url), 'utf8');
  const example = text.slice(text.indexOf('## JavaScript')).match(/```js\n([^]*?)```/)[1].replace("'watchdog-client'", `'${library}watchdog.js'`);
  const env = { WATCHDOG_SERVER: server };
  await run(process.execPath, ['--input-type=module', '-e', `const reflect = async (step) => ({ step });\n${example}`], { env });
  assert.equal((await monitor.progress('my-run')).lifecycle, 'completed');
});
