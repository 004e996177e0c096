// The model server of the tests, in virtual time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

export class ModelBackend {
  #process = null;
  url = null;

  /** `scenario`: keys of tests/support/backend_scenario.h. `scale`: virtual seconds a real one. */
  static async start(scenario, scale = 1) {
    const backend = new ModelBackend();
    backend.#process = spawn(process.env.WATCHDOG_MODEL_BACKEND,
                             ['--time-scale', `${scale}`, '--burn', '0.1', '--scenario', JSON.stringify(scenario)],
                             { stdio: ['ignore', 'pipe', 'inherit'] });
    const [url] = await once(backend.#process.stdout, 'data');
    backend.url = `${url}`.trim();
    return backend;
  }

  async change(scenario) {
    const answer = await fetch(`${this.url}/_scenario`, { method: 'POST', body: JSON.stringify(scenario) });
    if (!answer.ok) throw new Error(await answer.text());
  }

  /** Requests so far, each with its state: open, answered, cancelled or lost. */
  async log() {
    return (await fetch(`${this.url}/_log`)).json();
  }

  async end() {
    this.#process.kill();
    if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, 'exit');
  }
}
