// Server-sent events over fetch. Unlike EventSource, `Stream` sees the comments that keep a
// connection alive, so it notices a connection that died silently. It also sees why the server
// refused a connection.

import { isNotifying } from './notify.js';

const quietMax = 40_000;  // ms without any byte; comments come every 15 s
const waits = [300, 1000, 2000, 4000];  // ms before the next try
const hiddenMax = 15_000;  // ms; a browser allows few connections to one server, for all its tabs

const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
});

/** Takes pieces of a stream apart into records. */
export class Records {
  #pieces = [];  // of a record that is not complete: put together once, as a snapshot comes in many

  /** Calls `sink` with name, data and id of every record that is complete. */
  feed(text, sink) {
    const isEnd = text.includes('\n\n') || (text.startsWith('\n') && this.#pieces.at(-1)?.endsWith('\n'));
    this.#pieces.push(text);
    if (!isEnd) return;
    const all = this.#pieces.join('');
    let begin = 0;
    for (let end; (end = all.indexOf('\n\n', begin)) >= 0; begin = end + 2) {
      let name = 'message';
      let id = null;
      const data = [];
      for (const line of all.slice(begin, end).split('\n')) {
        const colon = line.indexOf(':');
        const value = line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
        if (line.startsWith('event:')) name = value;
        else if (line.startsWith('data:')) data.push(value);
        else if (line.startsWith('id:')) id = value;
      }
      if (data.length > 0) sink(name, JSON.parse(data.join('\n')), id);
    }
    this.#pieces = begin < all.length ? [all.slice(begin)] : [];
  }
}

/**
 * Follows a stream until the page is left; comes back by itself, and goes on where it was.
 * `on.record(name, data)` for each record; `on.state(word)`: connecting, live, lost, resting (the
 * page is hidden) or refused (then it has given up; `status` says why).
 */
export class Stream {
  #path;
  #on;
  #last = null;
  #attempt = new AbortController();
  #wake = new AbortController();
  #hidden = null;

  constructor(path, on) {
    this.#path = path;
    this.#on = on;
    addEventListener('online', () => this.#wake.abort());
    document.addEventListener('visibilitychange', () => this.#seen());
    this.#follow();
  }

  #seen() {
    clearTimeout(this.#hidden);
    if (document.visibilityState === 'visible') this.#wake.abort();
    else if (!isNotifying()) this.#hidden = setTimeout(() => this.#attempt.abort(), hiddenMax);
  }

  async #follow() {
    for (let failures = 0; ;) {
      this.#on.state('connecting');
      this.#attempt = new AbortController();
      const refused = await this.#read(() => { failures = 0; });
      if (refused) return this.#on.state('refused', refused);
      const hidden = document.visibilityState === 'hidden' && this.#attempt.signal.aborted;
      this.#on.state(hidden ? 'resting' : 'lost');
      this.#wake = new AbortController();
      await pause(hidden ? 2 ** 31 - 1 : waits[Math.min(failures++, waits.length - 1)], this.#wake.signal);
    }
  }

  /** Reads until it ends. A status, if asking again is no use. */
  async #read(flows) {
    const attempt = this.#attempt;
    let quiet = setTimeout(() => attempt.abort(), quietMax);
    try {
      const response = await fetch(this.#path, {
        cache: 'no-store',
        headers: this.#last ? { 'Last-Event-ID': this.#last } : {},
        signal: attempt.signal,
      });
      if (!response.ok) {
        attempt.abort();
        return [401, 403, 404].includes(response.status) ? response.status : null;
      }
      this.#on.state('live');
      flows();
      const records = new Records();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece; !(piece = await reader.read()).done;) {
        clearTimeout(quiet);
        quiet = setTimeout(() => attempt.abort(), quietMax);
        records.feed(piece.value, (name, data, id) => {
          try {
            this.#on.record(name, data);
          } catch (fault) {  // the page's own, and no reason to ask for it again
            console.error(`a record of kind ${name} cannot be shown`, fault);
          }
          if (id) this.#last = id;
        });
      }
    } catch (failure) {
      if (failure instanceof SyntaxError) console.error('the stream is no JSON', failure);
    } finally {
      clearTimeout(quiet);
    }
    return null;
  }
}
