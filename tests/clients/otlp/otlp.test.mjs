// OpenTelemetry's own SDK and exporters, in both encodings, plain and compressed.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPLogExporter as JsonLogs } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPLogExporter as ProtoLogs } from '@opentelemetry/exporter-logs-otlp-proto';
import { AggregationTemporalityPreference, OTLPMetricExporter as JsonMetrics } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as ProtoMetrics } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter as JsonTraces } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtoTraces } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Monitor } from './monitor.mjs';

const forms = [
  { form: 'json', Traces: JsonTraces, Logs: JsonLogs, Metrics: JsonMetrics },
  { form: 'protobuf', Traces: ProtoTraces, Logs: ProtoLogs, Metrics: ProtoMetrics },
];

/** An exporter that fails the test if the monitor does not take everything. */
function checked(exporter) {
  const send = exporter.export.bind(exporter);
  exporter.failures = [];
  exporter.export = (items, done) => send(items, (result) => {
    if (result.code !== 0) exporter.failures.push(result.error ?? result);
    done(result);
  });
  return exporter;
}

for (const { form, Traces, Logs, Metrics } of forms) {
  for (const compression of ['none', 'gzip']) {
    describe(`${form}, compression ${compression}`, () => {
      let monitor;
      const resource = (service) => resourceFromAttributes({ 'service.name': service, 'user.email': 'ann@example.org' });
      const events = async (session) =>
        (await monitor.ask(`/api/autonomous/sessions/${session}/events?limit=1000`)).events.filter(({ kind }) => kind !== 'heartbeat');
      before(async () => { monitor = await Monitor.start(); });
      after(() => monitor.end());

      test('spans of the GenAI conventions', async () => {
        const exporter = checked(new Traces({ url: `${monitor.url}/v1/traces`, compression }));
        const provider = new BasicTracerProvider({ resource: resource('my-agent'), spanProcessors: [new BatchSpanProcessor(exporter)] });
        const tracer = provider.getTracer('test');
        const shared = { 'gen_ai.conversation.id': 'conv' };
        const root = tracer.startSpan('invoke_agent coder', { attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'coder', ...shared } });
        const within = trace.setSpan(ROOT_CONTEXT, root);
        const step = (name, attributes, fails) => {
          const span = tracer.startSpan(name, { attributes: { ...attributes, ...shared } }, within);
          if (fails) {
            span.recordException(new Error('no such file'));
            span.setStatus({ code: SpanStatusCode.ERROR, message: 'it failed' });
          }
          span.end();
        };
        step('chat small', { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 100, 'gen_ai.usage.output_tokens': 20 });
        for (const [id, fails] of [['c1', false], ['c2', true]])
          step('execute_tool read', { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'read', 'gen_ai.tool.call.id': id,
                                      'gen_ai.tool.call.arguments': '{"path": "a"}' }, fails);
        root.end();
        await provider.forceFlush();
        await provider.shutdown();
        assert.deepEqual(exporter.failures, []);
        const told = await events('conv');
        assert.deepEqual(told.map(({ kind }) => kind).sort(), ['budget', 'error', 'idle', 'tool_call', 'tool_call', 'tool_result']);
        assert.match(told.find(({ kind }) => kind === 'error').text, /no such file/);
        const document = await monitor.ask('/api/autonomous/progress/conv');
        assert.equal(document.agent, 'coder');
        assert.equal(document.budget.tokens, 120);
        assert.doesNotMatch(JSON.stringify([told, document]), /ann@/);
      });

      test('logs of Claude Code', async () => {
        const exporter = checked(new Logs({ url: `${monitor.url}/v1/logs`, compression, headers: { 'X-Watchdog-Session': 'named' } }));
        const provider = new LoggerProvider({ resource: resource('claude-code'), processors: [new BatchLogRecordProcessor({ exporter })] });
        const logger = provider.getLogger('com.anthropic.claude_code.events');
        const say = (name, attributes) => logger.emit({ body: `claude_code.${name}`, attributes: { 'event.name': name, 'session.id': 'own', ...attributes } });
        say('user_prompt', { prompt: 'mend it' });
        say('api_request', { input_tokens: 10, output_tokens: 5, cost_usd: 0.25, model: 'm' });
        say('tool_result', { tool_name: 'Bash', tool_use_id: 't1', success: 'true', duration_ms: 12, tool_parameters: '{"command": "make"}' });
        await provider.forceFlush();
        await provider.shutdown();
        assert.deepEqual(exporter.failures, []);
        assert.deepEqual((await events('named')).map(({ kind }) => kind).sort(), ['budget', 'tool_call', 'tool_result', 'user_input']);
        assert.equal((await monitor.ask('/api/autonomous/progress/named')).budget.cost, 0.25);
      });

      for (const temporality of ['CUMULATIVE', 'DELTA']) {
        test(`metrics alone, ${temporality}`, async () => {
          const exporter = checked(new Metrics({
            url: `${monitor.url}/v1/metrics`, compression, temporalityPreference: AggregationTemporalityPreference[temporality] }));
          const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
          const provider = new MeterProvider({ resource: resource('claude-code'), readers: [reader] });
          const counter = provider.getMeter('m').createCounter('claude_code.token.usage');
          const session = `metrics-${temporality}`;
          for (const more of [100, 50]) {
            counter.add(more, { 'session.id': session, type: 'input' });
            counter.add(more / 10, { 'session.id': session, type: 'output' });
            counter.add(999, { 'session.id': session, type: 'cacheRead' });
            await provider.forceFlush();
          }
          await provider.shutdown();
          assert.deepEqual(exporter.failures, []);
          assert.equal((await monitor.ask(`/api/autonomous/progress/${session}`)).budget.tokens, 165);
        });
      }
    });
  }
}
