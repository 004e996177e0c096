import type { Reporter } from './watchdog.js';

/** Reports spans of models and tools to the reporter, or to the current one. */
export class WatchdogSpans {
  constructor(reporter?: Reporter);
  onStart(span: any): void;
  onEnd(span: any): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}
