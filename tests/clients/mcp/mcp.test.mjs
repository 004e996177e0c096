// The official clients of the Model Context Protocol against the real server, on stdio and over HTTP. Each message of the server
// is checked against the schema of its revision. Long times of the clients are ten times shorter here: a minute is six seconds.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { change, Monitor } from './monitor.mjs';

const scale = 10;
const wallSetTimeout = globalThis.setTimeout;
globalThis.setTimeout = (step, ms, ...rest) => wallSetTimeout(step, ms >= 10_000 ? ms / scale : ms, ...rest);
const pause = (ms) => new Promise((done) => { wallSetTimeout(done, ms); });

const old = await import('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport: OldStdio } = await import('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport: OldHttp } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { DEFAULT_REQUEST_TIMEOUT_MSEC } = await import('@modelcontextprotocol/sdk/shared/protocol.js');
const { CallToolResultSchema, ElicitRequestSchema, ResourceUpdatedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
const modern = await import('@modelcontextprotocol/client');
const { StdioClientTransport: ModernStdio } = await import('@modelcontextprotocol/client/stdio');

const program = process.env.WATCHDOG_MONITOR;
const data = process.env.WATCHDOG_MCP_DATA;
const tools = ['agents', 'agent', 'explain', 'bundle', 'wait', 'report', 'check', 'cancel', 'abort_call'];
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^WATCHDOG_/.test(name)));

/** The definitions that results of each method have to fit. */
const results = {
  'initialize': 'InitializeResult', 'ping': 'EmptyResult', 'tools/list': 'ListToolsResult', 'tools/call': 'CallToolResult',
  'resources/list': 'ListResourcesResult', 'resources/templates/list': 'ListResourceTemplatesResult',
  'resources/read': 'ReadResourceResult', 'resources/subscribe': 'EmptyResult', 'server/discover': 'DiscoverResult',
  'subscriptions/listen': 'SubscriptionsListenResult', 'tasks/get': 'GetTaskResult', 'tasks/cancel': 'CancelTaskResult',
};

class Schema {
  faults = [];
  checked = new Map();
  #ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });

  constructor(revision) {
    this.revision = revision;
    this.#ajv.addSchema(JSON.parse(readFileSync(`${data}/${revision}.schema.json`, 'utf8')), 'mcp');
  }

  fits(name, value) {
    const validate = this.#ajv.getSchema(`mcp#/$defs/${name}`);
    assert.ok(validate, `${this.revision} defines no ${name}`);
    this.checked.set(name, (this.checked.get(name) ?? 0) + 1);
    if (!validate(value)) this.faults.push(`${name}: ${this.#ajv.errorsText(validate.errors)}: ${JSON.stringify(value).slice(0, 500)}`);
  }

  message(message, method) {
    this.fits('JSONRPCMessage', message);
    if (message.error) return;
    if (message.method === 'elicitation/create') this.fits('ElicitRequest', message);
    if (message.method === 'notifications/progress') this.fits('ProgressNotification', message);
    if (message.method === 'notifications/resources/updated') this.fits('ResourceUpdatedNotification', message);
    if (message.method === 'notifications/subscriptions/acknowledged') this.fits('SubscriptionsAcknowledgedNotification', message);
    if (!('result' in message)) return;
    if (message.result.resultType === 'input_required') return this.fits('InputRequiredResult', message.result);
    const task = message.result.task || message.result.resultType === 'task' || (method.startsWith('tasks/') && this.revision === '2026-07-28');
    if (method === 'tools/call' && message.result.task) this.fits('CreateTaskResult', message.result);
    if (!task && results[method]) this.fits(results[method], message.result);
  }

  /** Checks each message that comes in by a transport. */
  watch(transport) {
    const methods = new Map();
    const send = transport.send.bind(transport);
    transport.send = (message, ...rest) => {
      if (message.method && 'id' in message) methods.set(message.id, message.method);
      return send(message, ...rest);
    };
    let passed;
    Object.defineProperty(transport, 'onmessage', {
      configurable: true,
      get: () => passed,
      set: (take) => {
        passed = take && ((message, ...rest) => {
          this.message(message, methods.get(message.id));
          return take(message, ...rest);
        });
      },
    });
    return transport;
  }

  done() { assert.deepEqual(this.faults, []); }
}

let monitor;
const schemas = { old: new Schema('2025-11-25'), modern: new Schema('2026-07-28') };
before(async () => { monitor = await Monitor.start(); });
after(() => monitor.end());

const bearer = (token = monitor.token) => ({ Authorization: `Bearer ${token}` });
const command = () => ({ command: program, args: ['mcp', '--server', monitor.url], env: { ...environment, WATCHDOG_TOKEN: monitor.token, WATCHDOG_SESSION: 'own' }, stderr: 'inherit' });

/** `person` answers the questions of the server; without one the client cannot ask. */
async function oldClient(kind, { person, headers = bearer() } = {}) {
  const transport = kind === 'stdio' ? new OldStdio(command())
    : new OldHttp(new URL(`${monitor.url}/mcp`), { requestInit: { headers } });
  const client = new old.Client({ name: 'test', version: '1' }, { capabilities: person ? { elicitation: {} } : {} });
  if (person) client.setRequestHandler(ElicitRequestSchema, person);
  await client.connect(schemas.old.watch(transport));
  return client;
}
async function modernClient(kind, { person } = {}) {
  const transport = kind === 'stdio' ? new ModernStdio(command())
    : new modern.StreamableHTTPClientTransport(new URL(`${monitor.url}/mcp`), { requestInit: { headers: bearer() } });
  const client = new modern.Client({ name: 'test', version: '1' },
                                   { versionNegotiation: { mode: 'auto' }, capabilities: person ? { elicitation: { form: {} } } : {} });
  if (person) client.setRequestHandler('elicitation/create', person);
  await client.connect(schemas.modern.watch(transport));
  return client;
}

let number = 0;
async function session(more = {}) {
  const id = `s${++number}`;
  await monitor.make(id, more);
  await monitor.report(id, { kind: 'start' }, change('begun'));
  return id;
}
const call = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
const modernCall = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, options);

/** Streams that clients have open. */
async function openStreams() {
  const text = await (await fetch(`${monitor.url}/metrics`, { headers: bearer() })).text();
  return Number(text.match(/^watchdog_streams (\d+)/m)?.[1] ?? assert.fail(text));
}
/** Their number when it does not change: clients open and close some by themselves. */
async function settledStreams() {
  for (let before = -1; ;) {
    const now = await openStreams();
    if (now === before) return now;
    before = now;
    await pause(1_000);
  }
}
async function until(holds, what) {
  for (let tries = 0; tries < 600; ++tries) {
    if (await holds()) return;
    await pause(50);
  }
  assert.fail(`never: ${what}`);
}

/** A person of each answer; a tool that stops something asks, and stops nothing without an `accept`. */
async function asksAPerson(open, say) {
  for (const action of ['decline', 'accept']) {
    const id = await session();
    const asked = [];
    const client = await open(({ params }) => {
      asked.push(params.message);
      return action === 'accept' ? { action, content: {} } : { action };
    });
    const told = await say(client, 'cancel', { session: id, reason: 'enough' });
    assert.deepEqual(asked, [`Stop the agent's session "${id}"? The reason given is: "enough"`]);
    assert.equal(told.isError ?? false, action !== 'accept', JSON.stringify(told));
    const { events } = await monitor.ask(`/api/autonomous/sessions/${id}/events`);
    assert.equal(events.some(({ kind }) => kind === 'cancel'), action === 'accept');
    await client.close();
  }
}

describe('2025-11-25', () => {
  for (const kind of ['stdio', 'http']) {
    test(`${kind}: a person is asked before a session is stopped`, () =>
      asksAPerson((person) => oldClient(kind, { person }), call));

    test(`${kind}: tools and resources`, async () => {
      const client = await oldClient(kind);
      const id = await session({ agent: 'builder', labels: { team: 'a' } });
      const listed = await client.listTools();
      assert.deepEqual(listed.tools.map(({ name }) => name), tools);
      await client.ping();
      const found = await call(client, 'agents', { label: 'team:a', attention: ['working', 'resting', 'watch', 'ready', 'needs_you'] });
      assert.ok(found.structuredContent.agents.some(({ sessionId }) => sessionId === id), JSON.stringify(found));
      assert.equal((await call(client, 'agent', { session: id })).structuredContent.recent.at(-1).text.includes('begun'), true);
      assert.ok((await call(client, 'explain', { session: id })).structuredContent.changes.length > 0);
      const bundle = (await call(client, 'bundle', { session: id })).structuredContent;
      assert.match(bundle.readme, /^# Evidence of a session\n/);
      assert.equal(bundle.save, `watchdog-monitor bundle ${id}`);
      const own = kind === 'stdio' ? 'own' : id;
      const mine = kind === 'stdio' ? {} : { session: id };
      assert.equal((await call(client, 'report', { ...mine, kind: 'blocked', on: 'approval', text: 'may I?' })).structuredContent.stored, true);
      assert.equal((await call(client, 'agent', { session: own })).structuredContent.agent.state, 'needs_input');
      assert.equal((await call(client, 'report', { ...mine, kind: 'unblocked' })).structuredContent.stored, true);
      if (kind === 'stdio') {
        await call(client, 'report', { kind: 'progress', type: 'tested' });
        assert.equal((await monitor.ask('/api/autonomous/progress/own')).progress.stateChanges, 1);
        assert.equal((await call(client, 'report', { session: id, kind: 'progress' })).isError, true);
      }
      const stopped = await call(client, 'cancel', { session: id, reason: 'enough' });
      assert.equal(typeof stopped.structuredContent.message, 'string');
      if (kind === 'http')
        assert.match((await call(client, 'report', { ...mine, kind: 'progress' })).structuredContent.stop ?? 'ended', /enough|ended/);
      const audit = await monitor.ask('/api/audit');
      assert.ok(JSON.stringify(audit).includes(id), 'the audit log has the cancel');
      assert.equal((await call(client, 'agent', { session: 'nobody' })).isError, true);
      await assert.rejects(client.callTool({ name: 'rm' }));
      assert.ok((await client.listResources()).resources.length > 0);
      assert.ok((await client.listResourceTemplates()).resourceTemplates.length > 0);
      assert.equal(JSON.parse((await client.readResource({ uri: `watchdog://session/${id}` })).contents[0].text).sessionId, id);
      await assert.rejects(client.readResource({ uri: 'watchdog://session/nobody' }));
      await client.close();
    });

    test(`${kind}: a resource tells that it changed`, async () => {
      const client = await oldClient(kind);
      const id = await session();
      const updated = [];
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => { updated.push(params.uri); });
      await client.subscribeResource({ uri: `watchdog://session/${id}` });
      await until(async () => {
        await monitor.report(id, change('more'));
        return updated.length > 0;
      }, 'an update');
      assert.equal(updated[0], `watchdog://session/${id}`);
      await client.close();
    });

    test(`${kind}: a task of the older form`, async () => {
      const client = await oldClient(kind);
      const id = await session();
      const kinds = [];
      const stream = client.experimental.tasks.callToolStream({ name: 'wait', arguments: { session: id } }, CallToolResultSchema, { task: {} });
      for await (const message of stream) {
        kinds.push(message.type);
        if (message.type === 'taskCreated') await monitor.report(id, { kind: 'end', outcome: 'completed' });
        if (message.type === 'error') throw message.error;
        if (message.type === 'result') assert.equal(message.result.structuredContent.came, true);
      }
      assert.equal(kinds[0], 'taskCreated');
      assert.equal(kinds.at(-1), 'result');
      await client.close();
    });

    test(`${kind}: a client that gives up ends its wait`, async () => {
      const client = await oldClient(kind);
      const id = await session();
      const before = await settledStreams();
      const giveUp = new AbortController();
      const waiting = call(client, 'wait', { session: id }, { signal: giveUp.signal });
      await until(async () => await openStreams() > before , 'the wait');
      giveUp.abort();
      await assert.rejects(waiting);
      await until(async () => await openStreams() <= before, 'its end');
      await client.close();
    });
  }

  test('a token for reports has the tool for reports, and no other', async () => {
    const secret = 'reports-only-0123456789abcdef0123456789abcdef';
    const file = `${monitor.database}-token`;
    writeFileSync(file, `reporter report ${secret}\n${readFileSync(file, 'utf8')}`);
    await until(async () => (await (await fetch(`${monitor.url}/api/access`, { headers: bearer(secret) })).json()).name === 'reporter', 'the token');
    const id = await session();
    const client = await oldClient('http', { headers: { ...bearer(secret), 'X-Watchdog-Session': id } });
    assert.deepEqual((await client.listTools()).tools.map(({ name }) => name), ['report']);
    assert.equal((await call(client, 'report', { kind: 'blocked', on: 'approval' })).structuredContent.stored, true);
    assert.equal((await call(client, 'report', { kind: 'progress', session: 'own' })).isError, true);
    assert.equal((await monitor.ask(`/api/autonomous/progress/${id}`)).state, 'needs_input');
    for (const name of ['agent', 'explain', 'wait', 'cancel'])
      assert.match((await call(client, name, { session: id })).content[0].text, /lacks the scope (read|act)/, name);
    await assert.rejects(client.readResource({ uri: `watchdog://session/${id}` }));
    await client.close();
  });

  test('a wait of ten minutes survives the default limits, as does one that nothing keeps open', { timeout: 300_000 }, async () => {
    await Promise.all(['stdio', 'http'].flatMap((kind) => [
      (async () => {
        const client = await oldClient(kind);
        const id = await session();
        let over = false;
        let told = 0;
        const waiting = call(client, 'wait', { session: id }, { resetTimeoutOnProgress: true, onprogress: () => { ++told; } })
          .finally(() => { over = true; });
        for (const end = performance.now() + 600_000 / scale; performance.now() < end && !over;) {
          await monitor.report(id, change('step'));
          await pause(500);
        }
        assert.equal(over, false, 'it goes on for ten minutes');
        await monitor.report(id, { kind: 'end', outcome: 'completed' });
        assert.equal((await waiting).structuredContent.came, true);
        assert.ok(told > 10, `${told} times told`);
        await client.close();
      })(),
      (async () => {
        const client = await oldClient(kind);
        const id = await session();
        // The default of the client, in real time.
        const given = await call(client, 'wait', { session: id, until: 'state-change=built' }, { timeout: DEFAULT_REQUEST_TIMEOUT_MSEC * scale });
        assert.equal(given.isError, undefined);
        assert.equal(given.structuredContent.came, false);
        assert.match(given.structuredContent.continue, /call wait again/);
        await monitor.report(id, change('built'));  // between two calls: it is not missed
        const next = await call(client, 'wait', { session: id, until: 'state-change=built', after: given.structuredContent.after });
        assert.equal(next.structuredContent.came, true);
        await client.close();
      })(),
    ]));
  });

  test('the answers fit the schema', () => {
    schemas.old.done();
    for (const name of ['InitializeResult', 'ListToolsResult', 'ElicitRequest', 'CallToolResult', 'ProgressNotification', 'CreateTaskResult', 'GetTaskResult', 'ReadResourceResult', 'ResourceUpdatedNotification'])
      assert.ok(schemas.old.checked.get(name) > 0, `${name} was checked`);
  });
});

describe('2026-07-28', () => {
  for (const kind of ['stdio', 'http']) {
    test(`${kind}: tools, progress and subscriptions`, async () => {
      const client = await modernClient(kind);
      assert.equal(client.getProtocolEra(), 'modern');
      const id = await session();
      assert.deepEqual((await client.listTools()).tools.map(({ name }) => name), tools);
      assert.equal((await modernCall(client, 'agent', { session: id })).structuredContent.agent.sessionId, id);
      assert.ok((await client.listResources()).resources.length > 0);
      const updated = [];
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => { updated.push(params.uri); });
      const subscription = await client.listen({ resourceSubscriptions: [`watchdog://session/${id}`] });
      await until(async () => {
        await monitor.report(id, change('more'));
        return updated.length > 0;
      }, 'an update');
      await subscription.close();
      const told = [];
      const waiting = modernCall(client, 'wait', { session: id }, { onprogress: ({ progress }) => { told.push(progress); } });
      await until(async () => {
        await monitor.report(id, change('more'));
        return told.length > 2;
      }, 'progress');
      assert.deepEqual(told, told.toSorted((a, b) => a - b));
      await monitor.report(id, { kind: 'end', outcome: 'completed' });
      assert.equal((await waiting).structuredContent.came, true);
      await client.close();
    });
  }

  for (const kind of ['stdio', 'http'])
    test(`${kind}: a person is asked before a session is stopped`, () =>
      asksAPerson((person) => modernClient(kind, { person }), modernCall));

  const tasks = { 'io.modelcontextprotocol/tasks': {} };
  const post = async (method, params = {}, { extensions = {}, headers = {}, signal, id = 1 } = {}) => {
    const name = params.name ?? params.uri ?? params.taskId;
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': { extensions } };
    const response = await fetch(`${monitor.url}/mcp`, {
      method: 'POST',
      signal,
      headers: { ...bearer(), 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
                 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...(name ? { 'Mcp-Name': name } : {}), ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }),
    });
    if (response.headers.get('content-type') !== 'application/json') return { status: response.status, body: null, response };
    const body = await response.json();
    schemas.modern.message(body, method);
    return { status: response.status, body, response };
  };

  test('statuses and codes of what cannot be answered', async () => {
    const refused = async (made, status, code) => {
      const { status: given, body } = await made;
      assert.equal(given, status, JSON.stringify(body));
      assert.equal(body.error.code, code);
    };
    await refused(post('nothing/here'), 404, -32601);
    await refused(post('tools/list', {}, { headers: { 'Mcp-Method': 'tools/call' } }), 400, -32020);
    await refused(post('tools/list', {}, { headers: { 'MCP-Protocol-Version': '2025-11-25' } }), 400, -32020);
    await refused(post('tools/call', { name: 'agents' }, { headers: { 'Mcp-Name': 'agent' } }), 400, -32020);
    await refused(post('tasks/get', { taskId: 'x' }), 400, -32021);
    await refused(post('tasks/get', { taskId: 'x' }, { extensions: tasks }), 200, -32602);
    const encoded = `=?base64?${Buffer.from('agents').toString('base64')}?=`;
    assert.equal((await post('tools/call', { name: 'agents' }, { headers: { 'Mcp-Name': encoded } })).status, 200);
    const send = (headers, body, method = 'POST') => fetch(`${monitor.url}/mcp`, { method, headers: { 'Content-Type': 'application/json', ...headers }, body });
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    assert.equal((await send({ Origin: 'https://evil.example' }, ping)).status, 403);
    assert.equal((await send({ Origin: 'https://evil.example' }, undefined, 'GET')).status, 403);
    assert.equal((await send({}, undefined, 'GET')).status, 400);
    assert.equal((await send({}, undefined, 'PATCH')).status, 405);
    assert.equal((await send({ 'Mcp-Session-Id': 'gone' }, ping)).status, 404);
    assert.equal((await send({}, `[${ping}]`)).status, 400);
    assert.equal((await send({}, '{')).status, 400);
    assert.equal((await send({ 'Content-Type': 'text/plain' }, ping)).status, 415);
    assert.equal((await send({}, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'x'.repeat(5_000_000)}"}}`)).status, 413);
    assert.equal((await send({}, ping)).status, 200);
    // A client without a token cannot call tools that act.
    const cancel = await (await send({}, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'cancel', arguments: { session: 's1' } } }))).json();
    assert.equal(cancel.result.isError, true);
    assert.match(cancel.result.content[0].text, /token/);
  });

  test('a task, and a stream that is closed', async () => {
    const id = await session();
    const begun = await post('tools/call', { name: 'wait', arguments: { session: id } }, { extensions: tasks });
    const task = begun.body?.result ?? JSON.parse((await begun.response.text()).match(/^data: (.*)$/m)[1]).result;
    assert.equal(task.resultType, 'task');
    const get = async () => (await post('tasks/get', { taskId: task.taskId }, { extensions: tasks })).body.result;
    assert.equal((await get()).status, 'working');
    await monitor.report(id, { kind: 'end', outcome: 'completed' });
    await until(async () => (await get()).status === 'completed', 'the task is done');
    assert.equal((await get()).result.structuredContent.came, true);

    const before = await settledStreams();
    const other = await session();
    const giveUp = new AbortController();
    const open = await post('tools/call', { name: 'wait', arguments: { session: other } }, { signal: giveUp.signal });
    assert.equal(open.response.headers.get('content-type'), 'text/event-stream');
    assert.ok(await openStreams() > before);
    giveUp.abort();
    await until(async () => await openStreams() <= before, 'the stream is gone');
  });

  test('a task goes on in the next monitor', async () => {
    const id = await session();
    const begin = async (session) => {
      const { body, response } = await post('tools/call', { name: 'wait', arguments: { session, until: 'state-change=built' } }, { extensions: tasks });
      return (body?.result ?? JSON.parse((await response.text()).match(/^data: (.*)$/m)[1]).result).taskId;
    };
    const taskId = await begin(id);
    const get = async () => (await post('tasks/get', { taskId }, { extensions: tasks })).body.result;
    await monitor.report(id, change('begun'));
    await until(async () => (await get()).statusMessage !== 'Nothing is known of it yet', 'what the task knows');
    await monitor.kill();
    await monitor.serve();
    await monitor.report(id, change('built'), change('more'));  // before the client asks again
    await until(async () => (await get()).status === 'completed', 'the end of the task');
    assert.equal((await get()).result.structuredContent.came, true);
    await monitor.kill();
    await monitor.serve();
    assert.equal((await get()).result.structuredContent.came, true);
  });

  test('the answers fit the schema', () => {
    schemas.modern.done();
    for (const name of ['InputRequiredResult', 'DiscoverResult', 'ListToolsResult', 'CallToolResult', 'ProgressNotification', 'SubscriptionsAcknowledgedNotification'])
      assert.ok(schemas.modern.checked.get(name) > 0, `${name} was checked`);
  });
});

test('the program ends with its input, and answers what came before', async () => {
  const server = spawn(program, ['mcp', '--server', monitor.url], { env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = [];
  createInterface({ input: server.stdout }).on('line', (line) => { lines.push(JSON.parse(line)); });
  const id = await session();
  const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } } });
  send({ id: 2, method: 'tools/call', params: { name: 'wait', arguments: { session: id } } });
  send({ id: 3, method: 'tools/call', params: { name: 'agents', arguments: {} } });
  server.stdin.end('this is no JSON\n');
  const [code] = await once(server, 'close');
  assert.equal(code, 0);
  assert.deepEqual(lines.map((line) => line.id).sort(), [1, 3, undefined]);
  assert.equal(lines.find((line) => line.error).error.code, -32700);
});

test('a file answers as a monitor does', async () => {
  const id = await session();
  const database = monitor.database;
  const server = spawn(program, ['mcp', '--db', database], { env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const ask = async (name, args) => {
    server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: name, method: 'tools/call', params: { name, arguments: args } })}\n`);
    return JSON.parse((await lines.next()).value).result;
  };
  assert.equal((await ask('agent', { session: id })).structuredContent.agent.sessionId, id);
  const waiting = ask('wait', { session: id });
  await monitor.report(id, { kind: 'end', outcome: 'completed' });
  assert.equal((await waiting).structuredContent.came, true);
  server.stdin.end();
  await once(server, 'close');
});
