// For OpenTelemetry: new BasicTracerProvider({ spanProcessors: [new WatchdogSpans()] }). It understands the conventions for generative
// AI, OpenInference, OpenLLMetry and the package `ai`, and reports running calls, which an exporter cannot.

import { Reporter } from './watchdog.js';

const kindOf = ({ attributes: a }) => `${a['gen_ai.operation.name'] ?? a['openinference.span.kind'] ?? a['traceloop.span.kind'] ?? a['ai.operationId'] ?? ''}`.toLowerCase();
const isTool = (kind) => ['execute_tool', 'tool', 'ai.toolcall'].includes(kind);
const isModel = (kind) => /^(chat|text_completion|generate_content|llm|ai\.\w+\.do(generate|stream))$/.test(kind);
const first = ({ attributes }, ...names) => names.map((name) => attributes[name]).find((value) => value !== undefined);

function data(value) {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Reports spans of models and tools to the reporter, or to the current one. */
export class WatchdogSpans {
  #of;
  #calls = new Map();
  #steps = 0;

  constructor(reporter) {
    this.#of = () => reporter ?? Reporter.current();
  }

  onStart(span) {
    const watchdog = this.#of();
    if (watchdog && isModel(kindOf(span))) watchdog.heartbeat(++this.#steps, 'model');
    if (watchdog && isTool(kindOf(span))) this.#begin(watchdog, span);
  }

  #begin(watchdog, span) {
    const id = first(span, 'gen_ai.tool.call.id', 'ai.toolCall.id', 'tool_call.id') ?? span.spanContext().spanId;
    const tool = first(span, 'gen_ai.tool.name', 'ai.toolCall.name', 'tool.name', 'traceloop.entity.name') ?? span.name;
    const args = first(span, 'gen_ai.tool.call.arguments', 'ai.toolCall.args', 'tool.parameters', 'input.value', 'traceloop.entity.input');
    this.#calls.set(span.spanContext().spanId, { watchdog, tool, id });
    watchdog.toolCall(tool, data(args), id);
  }

  onEnd(span) {
    const key = span.spanContext().spanId;
    // Some libraries set the kind of a span after its start.
    if (!this.#calls.has(key) && isTool(kindOf(span)) && this.#of()) this.#begin(this.#of(), span);
    const { watchdog, tool, id } = this.#calls.get(key) ?? {};
    this.#calls.delete(key);
    const result = first(span, 'gen_ai.tool.call.result', 'ai.toolCall.result', 'output.value', 'traceloop.entity.output');
    if (span.status.code === 2) watchdog?.toolError(tool, span.status.message ?? 'error', id);
    else watchdog?.toolResult(tool, data(result), id);
  }

  async forceFlush() {}
  async shutdown() {}
}
