// The plugin that reports what opencode does to watchdog-monitor.
//
// `watchdog-monitor hooks install opencode` writes it to ~/.config/opencode/plugin/, or with
// --project to .opencode/plugin/, and fills in the line `installed` below. Variables have priority:
//
// WATCHDOG_SERVER   the monitor's URL; default http://127.0.0.1:3000
// WATCHDOG_SESSION  report the main session under this name, as `watchdog-monitor run` sets it
// WATCHDOG_TOKEN    where the monitor asks for a token
//
// A missing or slow monitor stops nothing. A report gives up after a second, and the plugin tries
// again after a pause of 1 to 30 seconds, or at once when a turn ends. It keeps up to 200 events
// meanwhile. Only a cancel makes the plugin stop opencode. With `holdSeconds` a person may answer its
// questions at the monitor as well.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { rootCertificates } from 'node:tls';

/// The monitor's URL, a file with the header that carries the token, and one with certificates to trust.
const installed = { server: "", headerFile: "", caFile: "" };

const patience = 1_000;
const pauses = { first: 1_000, longest: 30_000 };
const keptMax = 200;
const keptAtExit = 10;

/// True for events without which a finished turn looks like one that died with its process.
const endsTurn = (type) => type === 'session.idle' || type === 'session.error';

/// True for a state in which opencode works, or tries again by itself.
const isWorking = (status) => status?.type === 'busy' || status?.type === 'retry';

/// True for events that the monitor understands. The bus has many more, such as parts of answers.
const isReported = (type) =>
  type.startsWith('permission.') ||
  type.startsWith('question.') ||
  [
    'session.created',
    'session.status',
    'session.idle',
    'session.error',
    'session.compacted',
    'session.deleted',
  ].includes(type);

/// True for a failed call. opencode has no hook for its end.
const isFailedCall = ({ type, properties }) =>
  type === 'message.part.updated' && properties?.part?.type === 'tool' && properties.part.state?.status === 'error';

/// The token of the file is for the monitor that the plugin was installed for, and for no other.
const authorizationFor = (server) => {
  if (process.env.WATCHDOG_TOKEN) return `Bearer ${process.env.WATCHDOG_TOKEN}`;
  if (!installed.headerFile || server !== installed.server) return undefined;
  try {
    return readFileSync(installed.headerFile, 'utf8').replace(/^Authorization: /, '').trim();
  } catch {
    return undefined;
  }
};

/// The certificates of the file, for the monitor that the plugin was installed for.
const trustFor = (server) => {
  if (!installed.caFile || server !== installed.server) return undefined;
  try {
    return [...rootCertificates, readFileSync(installed.caFile, 'utf8')];
  } catch {
    return undefined;
  }
};

/// Posts a body. Unlike fetch, this uses no proxy of the environment: prompts stay on the way to the monitor.
const post = (url, headers, ca, body, ms = patience) =>
  new Promise((resolve, reject) => {
    const { request } = url.startsWith('https:') ? https : http;
    const sent = request(url, { method: 'POST', headers, ca, signal: AbortSignal.timeout(ms) }, (reply) => {
      let text = '';
      reply.setEncoding('utf8');
      reply.on('data', (piece) => { text += piece; });
      reply.on('end', () => resolve({ status: reply.statusCode, text }));
      reply.on('error', reject);
    });
    sent.on('error', reject);
    if (ms > patience) sent.on('socket', (socket) => socket.unref?.());  // opencode may end meanwhile
    sent.end(body);
  });

/// Returns the input of curl. It holds the token, which must not be among curl's arguments.
const curlConfig = ({ url, headers, caFile }, event) => {
  const quoted = (text) => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  return [`url = ${quoted(url)}`, ...Object.entries(headers).map(([name, value]) => `header = ${quoted(`${name}: ${value}`)}`),
          ...(caFile ? [`cacert = ${quoted(caFile)}`] : []), `data = ${quoted(JSON.stringify(event))}`].join('\n');
};

export const Watchdog = async ({ client, directory }) => {
  const server = (process.env.WATCHDOG_SERVER || installed.server || 'http://127.0.0.1:3000').replace(/\/+$/, '');
  const children = new Set();
  const working = new Set();  // sessions whose turn is not over
  const kept = [];
  let quietUntil = 0;
  let pause = pauses.first;
  let last = Promise.resolve();

  /// Returns where an event goes.
  const target = (event) => {
    const session = event.properties?.sessionID;
    const named = process.env.WATCHDOG_SESSION;
    const query = named && !children.has(session) ? `?session=${encodeURIComponent(named)}` : '';
    const headers = { 'Content-Type': 'application/json' };
    const authorization = authorizationFor(server);
    if (authorization) headers.Authorization = authorization;
    const caFile = server === installed.server ? installed.caFile : '';
    return { url: `${server}/api/hooks/opencode${query}`, headers, caFile };
  };

  /// Sends one event. Returns why the session is cancelled, or nothing; throws if the monitor does not answer.
  const send = async (event) => {
    const { url, headers } = target(event);
    const reply = await post(url, headers, trustFor(server), JSON.stringify(event));
    if (reply.status === 429 || reply.status >= 500) throw new Error(`the monitor answers ${reply.status}`);
    const answer = reply.status === 200 ? JSON.parse(reply.text) : {};
    return answer.continue === false ? answer.stopReason || 'cancelled' : undefined;
  };

  /// Sends what is kept, up to this event. The agent may wait for it, so a slow monitor gets no more
  /// than `patience` to begin with the next one. Returns what the answer to this event says.
  const deliver = async (event) => {
    if (Date.now() < quietUntil && !endsTurn(event.type)) return undefined;
    const end = Date.now() + patience;
    let stop;
    try {
      while (kept.includes(event)) {
        if (Date.now() > end) throw new Error('the monitor is slow');
        const first = kept[0];
        const said = await send(first);
        if (kept[0] === first) kept.shift();
        if (first === event) stop = said;
      }
      pause = pauses.first;
      quietUntil = 0;
    } catch {
      quietUntil = Date.now() + pause;
      pause = Math.min(2 * pause, pauses.longest);
    }
    return stop;
  };

  /// Reports events in their order; a cancelled session is aborted.
  const report = (type, properties, id) => {
    const event = { ...(id && { id }), type, properties, ...(directory && { cwd: directory }) };
    kept.push(event);
    if (kept.length > keptMax) kept.shift();
    last = last.then(async () => {
      const stop = await deliver(event);
      if (stop && properties.sessionID) {
        // The abort waits for the call that this event may belong to.
        Promise.resolve(client.session.abort({ path: { id: properties.sessionID } })).catch(() => {});
      }
      return stop;
    });
    return last;
  };

  /// Lets the monitor hold a question until a person answers it there, and passes that answer on. The terminal asks meanwhile.
  const hold = async (event) => {
    const { url, headers } = target(event);
    const seconds = installed.holdSeconds;
    const reply = await post(`${url}${url.includes('?') ? '&' : '?'}hold=${seconds}`, headers, trustFor(server), JSON.stringify(event), (seconds + 5) * 1_000);
    const { answers, reply: body } = reply.status === 200 ? JSON.parse(reply.text) : {};
    if (!['permission', 'question'].includes(answers)) return;
    const isDropped = answers === 'question' && body.answers.length === 0;
    await client._client.post({ url: `/${answers}/{requestID}/${isDropped ? 'reject' : 'reply'}`, path: { requestID: event.properties.id },
                                body: isDropped ? undefined : body, headers: { 'Content-Type': 'application/json' } });
  };

  // opencode ends without waiting for its plugins. Only a program can still send something then.
  const sendRest = () => {
    const end = Date.now() + patience;
    for (const event of kept.splice(0).slice(-keptAtExit)) {
      if (Date.now() > end) return;
      spawnSync('curl', ['--disable', '--noproxy', '*', '--connect-timeout', '0.3', '--max-time', '1', '--config', '-'], { input: curlConfig(target(event), event), timeout: patience });
    }
  };
  process.once('exit', sendRest);

  // A person's Ctrl-C ends a run without a further event. The event is that of an abort. The signal then does what it did before.
  process.once('SIGINT', () => {
    for (const sessionID of working) {
      const error = { name: 'MessageAbortedError', data: { message: 'interrupted by SIGINT' } };
      kept.push({ type: 'session.error', properties: { sessionID, error }, ...(directory && { cwd: directory }) });
    }
    working.clear();
    sendRest();
    if (process.listenerCount('SIGINT') === 0) process.kill(process.pid, 'SIGINT');
  });

  return {
    event: async ({ event }) => {
      if (isWorking(event.properties?.status)) working.add(event.properties.sessionID);
      if (endsTurn(event.type) || event.type === 'session.deleted')
        working.delete(event.properties?.sessionID ?? event.properties?.info?.id);
      if (event.type === 'session.created' && event.properties?.info?.parentID)
        children.add(event.properties.info.id);
      if (isReported(event.type) || isFailedCall(event)) await report(event.type, event.properties, event.id);
      if (installed.holdSeconds > 0 && ['permission.asked', 'question.asked'].includes(event.type))
        hold({ id: event.id, type: event.type, properties: event.properties, cwd: directory }).catch(() => {});
    },
    'chat.message': async (input, output) => {
      const text = (output.parts ?? [])
        .filter((part) => part.type === 'text' && !part.synthetic)
        .map((part) => part.text)
        .join('\n');
      working.add(input.sessionID);
      await report('chat.message', { sessionID: input.sessionID, text });
    },
    'tool.execute.before': async (input, output) => {
      const stop = await report('tool.execute.before', { ...input, ...output });
      if (stop) throw new Error(`${stop}. Every further call of this session is denied: stop.`);
    },
    'tool.execute.after': async (input, output) => {
      await report('tool.execute.after', { ...input, ...output });
    },
  };
};
