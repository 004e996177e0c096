// For Mastra: new Observability({ configs: { default: { serviceName: 'agent', exporters: [new WatchdogExporter()] } } }).

import { Reporter } from './watchdog.js';

const tools = new Set(['tool_call', 'mcp_tool_call']);

/** Reports model steps, tool calls, results and errors to the reporter, or to the current one: calls while they run. */
export class WatchdogExporter {
  name = 'watchdog';
  #of;
  #steps = 0;

  constructor(reporter) {
    this.#of = () => reporter ?? Reporter.current();
  }

  async exportTracingEvent({ type, exportedSpan: { id, type: kind, name, entityName, entityId, input, output, errorInfo } }) {
    const watchdog = this.#of();
    const tool = entityName ?? entityId ?? name;
    if (type === 'span_started' && kind === 'model_step') watchdog?.heartbeat(++this.#steps, 'model');
    if (!tools.has(kind)) return;
    if (type === 'span_started') watchdog?.toolCall(tool, input, id);
    else if (type === 'span_ended' && errorInfo) watchdog?.toolError(tool, errorInfo.message, id);
    else if (type === 'span_ended') watchdog?.toolResult(tool, output, id);
  }

  async flush() {}
  async shutdown() {}
}
