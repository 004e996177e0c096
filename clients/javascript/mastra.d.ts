import type { Reporter } from './watchdog.js';

/** Reports model steps, tool calls, results and errors to the reporter, or to the current one: calls while they run. */
export class WatchdogExporter {
  constructor(reporter?: Reporter);
  name: string;
  exportTracingEvent(event: { type: string; exportedSpan: any }): Promise<void>;
  flush(): Promise<void>;
  shutdown(): Promise<void>;
}
