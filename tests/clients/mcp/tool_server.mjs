// A tool server on the official SDK, for the tests of the proxy.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });
const text = (words) => ({ content: [{ type: 'text', text: words }] });
const server = new McpServer({ name: 'tools', version: '1' }, { capabilities: { logging: {} } });

server.registerTool('slow', { inputSchema: { steps: z.number() } }, async ({ steps }, extra) => {
  const progressToken = extra._meta?.progressToken;
  for (let step = 1; step <= steps; ++step) {
    await pause(300);
    if (progressToken !== undefined)
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: step, total: steps, message: `step ${step}` } });
  }
  // The SDK's client drops progress that comes with the result.
  await pause(100);
  return text('done');
});
server.registerTool('logs', { inputSchema: { lines: z.number() } }, async ({ lines }) => {
  for (let line = 1; line <= lines; ++line) {
    await pause(700);
    await server.server.sendLoggingMessage({ level: 'info', data: `line ${line}` });
  }
  return text('logged');
});
server.registerTool('stuck', {}, async (extra) => {
  await new Promise((done) => { extra.signal.addEventListener('abort', done); });
  return text('too late');
});
server.registerTool('ask', {}, async () => {
  const answer = await server.server.elicitInput({ message: 'Go on?', requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } } });
  return text(answer.action);
});
server.registerTool('die', {}, async () => process.exit(3));
await server.connect(new StdioServerTransport());
