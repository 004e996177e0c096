// The empty page: six ways in which sessions come here, each to copy. A line turns green when a
// session came that way.

import { access } from './api.js';
import { el, mark, put } from './element.js';

/** `via`: the label of sessions that came so; `test`: of those without it. */
function ways() {
  const { origin } = location;
  const proxy = access().proxyUrl;
  return [
    { name: 'Hooks', via: 'hooks', listens: `Listening at ${origin}/api/hooks/`,
      about: 'A coding agent reports by its own hooks: Claude Code, Codex, Gemini CLI, opencode, Cursor, Copilot CLI. This sets up those on your PATH. Start your agent again: its session appears here.',
      command: `watchdog-monitor hooks install --server ${origin}` },
    { name: 'Transcripts', via: 'transcript', listens: null, about: 'Claude Code and Codex write down what they do. The monitor reads it, without any set-up of the agent.',
      command: `watchdog-monitor follow claude-code --server ${origin}` },
    { name: 'Wrapped command', via: 'run', listens: `Listening at ${origin}`,
      about: 'Any command is watched from outside.', command: `watchdog-monitor run --server ${origin} -- make test` },
    { name: 'Model proxy', via: 'proxy', listens: proxy ? `Listening at ${proxy}` : 'Not running: start the monitor with --upstream and the URL of your model server',
      about: 'An unmodified agent reports by its requests to its model.', command: proxy ? `OPENAI_BASE_URL=${proxy}/v1 your-agent` : 'watchdog-monitor serve --upstream http://127.0.0.1:8080' },
    { name: 'Client library', via: null, listens: `Listening at ${origin}/api/autonomous/`,
      about: 'A program reports by a few lines of its own.', command: `curl ${origin}/api/autonomous/sessions/first/events -d '{"kind":"state_change","type":"it_works"}'` },
    { name: 'Demo', via: 'demo', listens: null, about: 'Ten agents that work, wait, loop and die, in a monitor of their own, whose address it prints.', command: 'watchdog-monitor demo --port 0' },
  ];
}

const ofRow = (row) => row.labels?.via ?? (row.agent?.startsWith('demo') ? 'demo' : null);

export class Ways {
  node = el('section', { class: 'ways', hidden: true, 'aria-labelledby': 'ways-title' });
  #lines = null;

  #build() {
    this.#lines = ways().map((way) => {
      const copied = el('span', { role: 'status' });
      const word = el('span', {}, 'not used yet');
      const state = el('b', { class: 'way unknown' }, el('span', { class: 'icon', 'aria-hidden': 'true' }), word);
      const line = el('li', {}, el('h3', {}, way.name, ' ', state), el('p', {}, way.about), way.listens ? el('small', {}, way.listens) : null,
        el('div', { class: 'copy' }, el('code', { tabindex: '0' }, way.command),
           el('button', { type: 'button', onclick: async () => {
             await navigator.clipboard?.writeText(way.command).then(() => put(copied, 'Copied.'), () => put(copied, 'Select it to copy.'));
           } }, 'Copy'), copied));
      return { way, line, state, word };
    });
    this.node.append(el('h2', { id: 'ways-title' }, 'No session has reported yet. For a coding agent take the first of six ways:'), el('ol', {}, ...this.#lines.map(({ line }) => line)));
  }

  /** Shown while there is nothing else, and then until the page is left. */
  show(rows) {
    if (rows.size > 0 && this.node.hidden) return;
    if (!this.#lines) this.#build();
    this.node.hidden = false;
    const used = new Set([...rows.values()].slice(0, 1000).map(ofRow));
    for (const { way, line, state, word } of this.#lines) {
      const is = used.has(way.via);
      mark(line, 'class', is ? 'used' : null);
      mark(state, 'class', `way ${is ? 'completed' : 'unknown'}`);
      put(word, is ? 'works: a session came' : 'not used yet');
    }
  }
}
