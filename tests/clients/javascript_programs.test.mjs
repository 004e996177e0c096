// The JavaScript client in kinds of programs: short ones, servers, notebooks, other runtimes. With the real monitor ($WATCHDOG_MONITOR).

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as client from '../../clients/javascript/watchdog.js';
import { TestSession } from '../../clients/javascript/vitest.js';
import { monitor, real, reporter, server, stored } from './javascript_case.mjs';

const { Monitor, Reporter, wrap } = client;
const module = new URL('../../clients/javascript/watchdog.js', import.meta.url).href;
const absent = 'http://127.0.0.1:9';

/** A program that has the client. Its output, and how it ended. */
function program(lines, { flags = [], ...env } = {}) {
  const script = `const { Monitor, Reporter, wait, wrap } = await import('${module}');\n${lines}`;
  const child = spawn(process.execPath, [...flags, '--input-type=module', '-e', script], { env: { PATH: process.env.PATH, WATCHDOG_SERVER: server, ...env } });
  child.text = '';
  for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (piece) => { child.text += piece; });
  child.over = once(child, 'close').then(([code, signal]) => ({ code, signal, text: child.text }));
  return child;
}

/** Takes all reports. */
async function listener() {
  const events = [];
  const http = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => { body += piece; });
    request.on('end', () => {
      if (request.url.endsWith('/events')) events.push(...JSON.parse(body));
      response.end('{"directive":null}');
    });
  }).listen(0, '127.0.0.1').unref();
  await once(http, 'listening');
  return { events, server: `http://127.0.0.1:${http.address().port}`, end: () => { http.closeAllConnections(); http.close(); } };
}

describe('costs', () => {
  test('a program leaves an absent monitor soon, and says what is lost', async () => {
    const { text } = await program(`
      const begun = performance.now();
      await new Reporter('a').run((one) => { one.stateChange('x'); });
      const other = new Reporter('b');
      other.completed();
      await other.close();
      console.log('took', performance.now() - begun < 1500);
      new Reporter('c').completed();`, { WATCHDOG_SERVER: absent }).over;
    assert.match(text, /took true/);
    assert.match(text, /watchdog a: 3 reports were not delivered: http:\/\/127\.0\.0\.1:9 cannot be reached: \S/);
    assert.match(text, /watchdog b: 2 reports were not delivered/);
    assert.match(text, /watchdog c: [12] reports? (was|were) not delivered/);
  });

  test('many exits wait for an absent monitor together, and one in vain for a mute one', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1');
    await once(mute, 'listening');
    for (const [server, most] of [[absent, 3000], [`http://127.0.0.1:${mute.address().port}`, 8000]]) {
      const { text } = await program(`
        const begun = performance.now();
        for (let at = 0; at < 20; ++at) await new Reporter('many-' + at, { log: null }).run((one) => { one.stateChange('x'); });
        console.log(Math.round(performance.now() - begun));`, { WATCHDOG_SERVER: server }).over;
      assert.ok(Number(text) < most, `${server}: ${text}`);
    }
    mute.closeAllConnections();
    mute.close();
  });

  test('process.exit() says what is lost, and a monitor that takes all hears no such thing', async () => {
    const left = await program(`const one = new Reporter('d'); one.stateChange('x'); one.completed(); process.exit(0);`).over;
    assert.match(left.text, /watchdog d: 2 reports were not delivered/);
    const { text } = await program(`const one = new Reporter('e'); one.stateChange('x'); one.completed(); await one.close(); process.exit(0);`).over;
    assert.equal(text, '');
  });

  test('an owner who states how long an exit may take gets that', async () => {
    const one = new Reporter('f', { server: absent, log: null, exit: 700 });
    const begun = performance.now();
    await one.run(() => {});
    assert.ok(performance.now() - begun > 600);
  });

  test('nothing runs on after the sessions have ended', async () => {
    const { text } = await program(`
      for (let at = 0; at < 20; ++at) {
        const one = new Reporter('many-' + at, { interval: 1000 });
        one.stateChange('x');
        one.completed();
        await one.flush();
      }
      console.log(process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length, process.listenerCount('SIGTERM'));`).over;
    assert.equal(text, '0 0\n');
  });

  test('ended sessions wait for an absent monitor in a limited number', async () => {
    const { text } = await program(`
      const ended = Array.from({ length: 130 }, (_, at) => new Reporter('ended-' + at, { log: null }));
      for (const one of ended) one.completed();
      await new Promise((done) => { setTimeout(done, 1500); });
      console.log(globalThis[Symbol.for('watchdog-client')].unsent.size);
      process.exit(0);`, { WATCHDOG_SERVER: absent }).over;
    assert.equal(text, '100\n');
  });

  test('a forgotten reporter keeps no session alive', async () => {
    const taker = await listener();
    const { text } = await program(`
      (() => { new Reporter('forgotten', { interval: 20 }).stateChange('x'); })();
      const held = new Reporter('held', { interval: 20 });
      await new Promise((done) => { setTimeout(done, 300); });
      const { open } = globalThis[Symbol.for('watchdog-client')];
      for (let at = 0; at < 100 && open.size > 1; ++at) {
        globalThis.gc();
        await new Promise((done) => { setTimeout(done, 20); });
      }
      console.log([...open.keys()].map(({ session }) => session).join());
      held.completed();
      await held.close();`, { WATCHDOG_SERVER: taker.server, flags: ['--expose-gc'] }).over;
    assert.equal(text, 'held\n');
    taker.end();
  });

  test('large data hold the caller up shortly, and are never equal', async () => {
    const one = new Reporter('large', { server: absent, log: null, interval: 0 });
    const text = Buffer.alloc(50 << 20, 'a').toString();
    const shapes = { text, dict: { text }, words: Array(50_000).fill('y'.repeat(1000)), dicts: Array.from({ length: 1_000_000 }, (_, at) => ({ at })),
                     bytes: new Uint8Array(50 << 20), inner: { bytes: Buffer.alloc(50 << 20) }, floats: new Float64Array(6 << 20), error: new Error(text),
                     key: { [text]: 1 }, escapes: { text: Buffer.alloc(50 << 20, '\n"').toString() }, map: new Map(Array.from({ length: 200_000 }, (_, at) => [at, at])) };
    const acts = { name: () => one.toolCall(text), end: () => new Reporter('large', { server: absent, log: null, interval: 0 }).failed(new Error(text)) };
    for (const [type, data] of Object.entries(shapes)) acts[type] = () => one.stateChange(type, data);
    for (const [type, act] of Object.entries(acts)) {
      const times = Array.from({ length: 15 }, () => {
        const begun = process.cpuUsage();
        act();
        const { user, system } = process.cpuUsage(begun);
        return (user + system) / 1000;
      });
      assert.ok(Math.min(...times) < 20, `${type}: ${times}`);  // Some ms on an idle machine.
    }
    await one.close(0);
    const taken = reporter({ content: 'full', interval: 0 });
    const many = Array(5000).fill({});
    for (const data of [text, text, shapes.dicts, shapes.dicts, 'b'.repeat(1 << 20), 'b'.repeat(1 << 20), many, many]) taken.stateChange('x', data);
    taken.completed();
    await taken.close();
    assert.equal(taken.rejected, 0);
    const hashes = (await stored(taken.session, 'state_change')).map((event) => event.result_hash);
    assert.ok(hashes.every(Boolean), hashes);
    assert.equal(new Set(hashes).size, 7);
    assert.equal(hashes[4], hashes[5]);
  });
});

describe('wrap', () => {
  const calls = async (session) => (await stored(session)).filter(({ kind }) => /^(tool_|error)/.test(kind) && kind !== 'tool_progress')
    .map(({ kind, name, args, text }) => [kind, name, kind === 'tool_call' ? args : text]);

  test('functions of each kind are reported with arguments and result, and stay what they are', async () => {
    const one = reporter();
    const box = { factor: 3, times: one.wrap(function times(number) { return this.factor * number; }) };
    const late = one.wrap(async function late(left, right) { return left + right; });
    const list = one.wrap(function* list(count) { for (let at = 0; at < count; ++at) yield at; return 'end'; });
    const stream = one.wrap(async function* stream() { yield 'a'; yield 'b'; });
    assert.equal(box.times(2), 6);
    assert.equal(await late(1, 2), 3);
    assert.deepEqual([...list(3)], [0, 1, 2]);
    for await (const item of stream()) if (item === 'a') break;
    assert.throws(one.wrap(() => { throw new RangeError('no'); }, { name: 'throws' }), RangeError);
    await assert.rejects(one.wrap(async () => { throw new RangeError('late'); }, { name: 'rejects' })(), RangeError);
    list(7);  // not iterated: not called
    const [, , ...long] = list(1000);
    assert.equal(long.length, 998);
    one.wrap((input) => input.path, { name: 'chosen', args: ({ path }) => ({ path }) })({ path: 'x', signal: AbortSignal.abort() });
    const thenable = one.wrap(() => ({ then: (done) => done(5) }), { name: 'thenable' });
    assert.equal(await thenable(), 5);
    const promise = Promise.resolve(1);
    assert.equal(one.wrap(() => promise)(), promise);
    assert.deepEqual([late.name, late.length], ['late', 2]);
    one.completed();
    await one.close();
    const found = await calls(one.session);
    assert.deepEqual(found.slice(0, 13), [
      ['tool_call', 'times', 2], ['tool_result', 'times', '6'], ['tool_call', 'late', [1, 2]], ['tool_result', 'late', '3'],
      ['tool_call', 'list', 3], ['tool_result', 'list', '{"count":3,"returned":"end","yielded":[0,1,2]}'],
      ['tool_call', 'stream', {}], ['tool_result', 'stream', '{"count":1,"yielded":["a"]}'],
      ['tool_call', 'throws', {}], ['error', 'throws', 'RangeError: no'], ['tool_call', 'rejects', {}], ['error', 'rejects', 'RangeError: late'],
      ['tool_call', 'list', 1000]]);
    assert.match(found[13][2], /"count":1000,"rest":"not shown \(opaque/);
    assert.deepEqual(found[14], ['tool_call', 'chosen', { path: 'x' }]);
  });

  test('a tool needs no argument to find its reporter and its call', async () => {
    const inner = wrap(async function inner(input) {
      await sleep(1);
      Reporter.current().message('assistant', input);
      return Reporter.currentCall().signal.aborted;
    });
    assert.equal(Reporter.current(), undefined);
    const ones = [reporter(), reporter()];
    await Promise.all(ones.map((one) => one.run(async () => {
      assert.equal(await inner(one.session), false);
      await one.tool('plain', {}, async ({ callId }) => assert.equal(Reporter.currentCall().callId, callId));
    })));
    for (const { session } of ones) {
      assert.deepEqual((await stored(session, 'message')).map(({ text }) => text), [session]);
      assert.deepEqual((await stored(session, 'tool_call')).map(({ name }) => name), ['inner', 'plain']);
    }
    const alone = reporter();
    assert.equal(Reporter.current(), alone);
    await alone.close();
    assert.equal(await wrap(async () => 7)(), 7);
  });

  test('the examples of the documentation run', async () => {
    const calls = ['tool_call', 'tool_result', 'state_change'];
    for (const [file, session, kinds] of [['docs/how-to/in-your-javascript-program.md', 'page', calls], ['clients/javascript/README.md', 'my-run', [...calls, ...calls, ...calls]]]) {
      const page = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      const { text } = await program(page.match(/```js\n([^]*?)```/)[1].replace(/^import .*/, ''), { WATCHDOG_SESSION: session }).over;
      assert.equal(text, '');
      assert.deepEqual((await stored(session)).map(({ kind }) => kind).filter((kind) => kind !== 'heartbeat'), ['start', ...kinds, 'end']);
    }
  });

  test('without node:async_hooks the only reporter is the current one', async () => {
    const { text } = await program(`
      process.getBuiltinModule = undefined;
      const { Reporter: Plain, wrap: plain } = await import('${module}?again');
      await new Plain('plain').run(async (one) => {
        await new Promise((done) => { setTimeout(done, 1); });
        console.log(Plain.current() === one, plain(() => 5, { name: 'five' })());
      });
      console.log(Plain.current());`.replace('process.get', 'delete globalThis[Symbol.for("watchdog-client")]; process.get')).over;
    assert.equal(text, 'true 5\nundefined\n');
    assert.deepEqual((await stored('plain', 'tool_call')).map(({ name }) => name), ['five']);
  });

  test('copies of the module know of each other', async () => {
    const { text } = await program(`
      const { Reporter: Other, wrap: other } = await import('${module}?copy');
      await new Reporter('copied').run(async (one) => {
        other(() => 5, { name: 'five' })();
        console.log(new Other(undefined, { log: null }).session !== 'copied', Other.current() === one);
      });`, { WATCHDOG_SESSION: 'copied' }).over;
    assert.equal(text, 'true true\n');
    assert.deepEqual((await stored('copied', 'tool_result')).map((event) => event.text), ['5']);
  });
});

describe('endings', () => {
  test('await using ends a session, and calls nothing completed that nobody completed', async () => {
    const [done, left] = [reporter(), reporter()];
    done.completed();
    for (const one of [done, left]) await one[Symbol.asyncDispose]();
    assert.equal((await monitor.progress(done.session)).lifecycle, 'completed');
    assert.equal((await monitor.progress(left.session)).lifecycle, 'incomplete');
  });

  test('what is aborted is cancelled, what takes too long has failed', async () => {
    for (const [name, expected] of [['AbortError', 'cancelled: aborted'], ['TimeoutError', 'failed: error']]) {
      const one = reporter();
      await assert.rejects(one.run(() => { throw new DOMException('no', name); }));
      const { outcome } = await monitor.progress(one.session);
      assert.equal(`${outcome.kind}: ${outcome.reason}`, expected);
    }
  });

  for (const signal of ['SIGINT', 'SIGTERM']) {
    test(`${signal} ends what run runs`, async () => {
      const child = program(`await Promise.all(['a', 'b'].map((name) => new Reporter('${signal}-' + name).run(async (one) => {
        one.stateChange('begun');
        await one.flush();
        console.log(name);
        await new Promise((done) => { setTimeout(done, 1e6); });
      })));`);
      while (child.text.length < 4) await once(child.stdout, 'data');
      child.kill(signal);
      assert.equal((await child.over).signal, signal);
      for (const name of ['a', 'b']) {
        const { outcome } = await monitor.progress(`${signal}-${name}`);
        assert.deepEqual([outcome.kind, outcome.reason], ['cancelled', signal]);
      }
    });
  }

  test('a signal to which the program listens is left to it', async () => {
    const child = program(`
      process.on('SIGTERM', () => { console.log('mine'); setTimeout(process.exit, 300); });
      await new Reporter('listens').run(async (one) => {
        await one.flush();
        console.log('ready');
        await new Promise((done) => { setTimeout(done, 1e6); });
      });`);
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    assert.match((await child.over).text, /mine/);
    assert.equal((await monitor.progress('listens')).lifecycle, 'running');
  });

  test('a cancel reaches a silent agent in some seconds', async () => {
    const one = reporter();
    await one.flush();
    await monitor.cancel(one.session, { reason: 'enough' });
    const begun = performance.now();
    await Promise.race([once(one.signal, 'abort'), sleep(60_000, null, { ref: false })]);
    assert.ok(one.cancelled);
    assert.ok(performance.now() - begun < 7000, `${performance.now() - begun}`);  // Two seconds on an idle machine, ten by heartbeats.
    assert.deepEqual((await stored(one.session, 'heartbeat')).length, 0);  // Questions are not stored.
    one.end('cancelled');
    await one.close();
  });
});

describe('tests', () => {
  test('the end of a test ends what its agent started, with SIGTERM first', async () => {
    const one = new TestSession('groups', undefined, { server });
    const child = one.start('sh', ['-c', `sh -c 'trap "echo bye; exit" TERM; echo $$; while :; do sleep 0.1; done' & sh -c 'trap "" TERM; echo $$; while :; do sleep 0.1; done' & wait`],
                            { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    child.stdout.on('data', (piece) => { text += piece; });
    while (text.split('\n').length < 3) await once(child.stdout, 'data');
    const pids = text.trim().split('\n').map(Number);
    await one.close();
    while (!text.includes('bye')) await once(child.stdout, 'data');
    const isGone = (pid) => {
      try {
        return /\) [XZ] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      } catch {
        return true;
      }
    };
    for (const pid of pids) while (!isGone(pid)) await sleep(20);
  });

  test('a wait for nobody says so', async () => {
    const { text } = await program(`
      const { TestSession } = await import('${module.replace('watchdog.js', 'vitest.js')}');
      TestSession.sayAfter = 100;
      const one = new TestSession('nobody');
      one.wait().catch(() => {});
      await new Promise((done) => { setTimeout(done, 1000); });
      process.exit();`).over;
    assert.match(text, /still waiting for nobody-\S+: nobody reports; agents must see WATCHDOG_SESSION.* This test started no agent and made no reporter/);
  });
});

describe('runtimes', () => {
  test('the reports are not for a mocked fetch, and an own one gets them', async () => {
    const { fetch } = globalThis;
    const asked = [];
    globalThis.fetch = () => { throw new Error('mocked'); };
    try {
      const one = reporter();
      one.completed();
      assert.ok(await one.close());
      const own = reporter({ fetch: (url, options) => { asked.push(options.method); return fetch(url, options); } });
      own.completed();
      assert.ok(await own.close());
      assert.equal((await new Monitor({ server, fetch: (...what) => { asked.push('get'); return fetch(...what); } }).progress(own.session)).lifecycle, 'completed');
    } finally {
      globalThis.fetch = fetch;
    }
    assert.deepEqual(asked, ['POST', 'get']);
  });

  test('reports to this machine go through no proxy where fetch would take one', async () => {
    for (const runtime of ['Bun', 'Deno']) {
      const { text } = await program(`
        globalThis.${runtime} = {};
        globalThis.fetch = () => { throw new Error('by a proxy'); };
        const { Reporter: Direct, Monitor: Asker, wait: ask } = await import('${module}?${runtime}');
        const one = new Direct('direct-${runtime}', { task: 'ü' });
        one.completed();
        console.log(await one.close(), (await ask('direct-${runtime}')).task, await new Asker().progress('absent').catch(({ status }) => status));
        const lost = new Direct('x', { server: '${absent}' });
        console.log(await lost.close());`).over;
      assert.match(text, /^true ü 404\n[^]*ECONNREFUSED[^]*false\n/);
    }
  });

  test('an environment that must not be read is taken for an empty one', async () => {
    const { text } = await program(`
      Object.defineProperty(process, 'env', { value: new Proxy({}, { get(target, key) { if (/WATCHDOG/.test(key)) throw new Error('NotCapable'); } }) });
      const { Reporter: Denied } = await import('${module}?denied');
      const one = new Denied('denied', { server: '${server}' });
      one.completed();
      console.log(await one.close());`).over;
    assert.match(text, /^true$/m);  // a busy machine may also say that reports wait
  });
});
