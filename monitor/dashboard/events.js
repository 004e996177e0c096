// The events of a session: the newest first, a page at a time, live at the top.

import { get } from './api.js';
import { spoken, waitOf } from './clock.js';
import { el } from './element.js';
import { serverBrief } from './health.js';
import { atWall } from './timeline.js';

const pageSize = 100;
const shownMax = 2000;
const quiet = 'quiet';  // the kind that stands for all but heartbeats
const fewest = 20;
const pagesMax = 5;
export const kinds = ['start', 'heartbeat', 'state_change', 'tool_call', 'tool_result', 'error', 'message', 'wait', 'idle',
                      'user_input', 'compaction', 'policy', 'cancel', 'exited', 'gap', 'end', 'opinion', 'chant', 'retry',
                      'budget', 'limit', 'turn', 'tool_progress', 'tool_timeout', 'evidence', 'resume'];
const verdicts = { A: 'progressing', B: 'looping', C: 'blocked', D: 'failed', inconclusive: 'inconclusive' };

export const verdictOf = (event) => verdicts[event.status] ?? event.state ?? 'asked';

const plain = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const words = (...parts) => parts.filter((part) => part !== undefined && part !== null && part !== '').join(' · ');

function beatWords({ count = 1, iteration, iteration_first: first, phase, source, span_ms: span, counters }) {
  const rounds = iteration !== undefined && `iteration ${first !== undefined && first !== iteration ? `${first}–` : ''}${iteration}`;
  const shown = Object.entries(counters ?? {}).map(([name, value]) => `${name} ${value}`).join(', ');
  return words(count > 1 && `${count} times`, rounds, phase, source === 'sidecar' && 'sidecar', source === 'relay' && 'proxy',
               span > 0 && `within ${spoken(span)}`, shown).replaceAll('false · ', '').replaceAll(' · false', '');
}

/** What an event says, in a line. */
export function describe(event) {
  const { kind, name, text } = event;
  switch (kind) {
    case 'heartbeat': return beatWords(event);
    case 'state_change': return words(event.type, event.data !== undefined ? plain(event.data) : null);
    case 'tool_call': return words(name, event.args !== undefined ? plain(event.args) : null);
    case 'wait': return words(event.waiting_for && `for ${waitOf({ waitingFor: event.waiting_for, waitProvider: event.provider, waitUntil: event.until_ms })}`, text);
    case 'policy': return plain(event.policy);
    case 'cancel': return words(`by ${event.by}`, event.turn_id && `turn ${event.turn_id}`, event.call_id && `call ${event.call_id}`, event.reason);
    case 'end': return words(event.outcome, event.reason, event.subject, event.error);
    case 'opinion': return words(name, verdictOf(event), text);
    case 'budget': return words(name, event.stage, event.axis, `${Math.round(event.max_pressure ?? 0)} % used`);
    case 'limit': return words(event.limit, `${event.reached} of ${event.limit_value}`);
    case 'turn': return words(name, event.call_id, event.reason);
    case 'tool_progress': return words(name, text, event.value !== undefined ? `${event.value}${event.total ? ` of ${event.total}` : ''}` : null);
    case 'tool_timeout': return words(name, `${event.limit_kind} limit of ${spoken(event.limit_ms ?? 0)}`, text);
    case 'evidence': return words(serverBrief({ ...event, done: event.done ?? 0, leftMs: event.left_ms ?? null }) || event.state, event.call_id, text);
    case 'start': return words(event.pid && `process ${event.pid}`, event.host);
    case 'exited': return `process ${event.pid} is gone`;
    case 'gap': return `${event.count} reports were lost`;
    default: return words(name, text);
  }
}

/** As JSON, but texts of several lines below it as they are, named by where they stand. */
export function readable(event) {
  const texts = [];
  const without = (value, path) => {
    if (typeof value === 'string' && value.includes('\n')) {
      texts.push(`${path.slice(1)}:\n${value}`);
      return '(below)';
    }
    if (Array.isArray(value)) return value.map((item, at) => without(item, `${path}[${at}]`));
    if (!value || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, without(inner, `${path}.${key}`)]));
  };
  return [JSON.stringify(without(event, ''), null, 2), ...texts].join('\n\n');
}

/** An event in a line, which opens to the whole of it. */
export function detailsOf(event) {
  const whole = el('pre', { tabindex: '0' });
  return el('details', { ontoggle: () => { whole.textContent ||= readable(event); } },
    el('summary', {}, atWall(event.at_ms), el('span', { class: 'kind' }, event.kind),
       el('span', { class: 'told' }, describe(event))), whole);
}

const item = (event) => el('li', { id: `event-${event.seq}`, class: `event ${event.kind}`, 'data-seq': event.seq }, detailsOf(event));

export class Events {
  node = el('section', { class: 'events', 'aria-labelledby': 'events-title' });
  #path;
  #list = el('ol', {});
  #kind = el('select', { 'aria-label': 'Kind of event', onchange: () => this.load() });
  #more = el('button', { type: 'button', onclick: () => this.#page() }, 'Older events');
  #newest = el('button', { type: 'button', class: 'plain', hidden: true, onclick: () => this.load() }, 'Back to the newest');
  #trouble = el('p', { class: 'trouble', role: 'alert' });
  #before = null;
  #live = true;
  #turn = 0;
  #seen = new Set();

  constructor(session) {
    this.#path = `/api/autonomous/sessions/${encodeURIComponent(session)}/events`;
    this.#kind.append(new Option('All but heartbeats', quiet), new Option('All kinds', ''), ...kinds.map((kind) => new Option(kind, kind)));
    this.node.append(el('div', { class: 'heading' }, el('h2', { id: 'events-title' }, 'Events'), this.#kind, this.#newest),
                     this.#trouble, this.#list, this.#more);
  }

  /** From the newest on, or from this event and those about it. */
  async load(from = null) {
    this.#turn += 1;
    this.#seen.clear();
    this.#list.replaceChildren();
    this.#live = from === null;
    this.#newest.hidden = this.#live;
    this.#before = from === null ? '9223372036854775807' : String(from + 1);
    await this.#page();
  }

  async #page() {
    const turn = this.#turn;
    this.#more.disabled = true;
    try {
      // Pages of heartbeats alone show nothing: then the next ones, but not for ever.
      for (let [added, pages] = [0, 0]; added < fewest && pages < pagesMax; ++pages) {
        const query = new URLSearchParams({ before: this.#before, limit: pageSize });
        if (this.#kind.value && this.#kind.value !== quiet) query.set('kind', this.#kind.value);
        const page = await get(`${this.#path}?${query}`);
        if (turn !== this.#turn) return;
        this.#trouble.textContent = '';
        this.#before = page.next;
        const fresh = page.events.filter((event) => !this.#seen.has(event.seq) && this.#wants(event));
        added += fresh.length;
        this.#list.append(...fresh.map((event) => {
          this.#seen.add(event.seq);
          return item(event);
        }));
        this.#more.hidden = page.next === null;
        if (page.next === null) break;
      }
    } catch (refusal) {
      this.#trouble.textContent = refusal.message;
    } finally {
      this.#more.disabled = false;
    }
  }

  #wants({ kind }) {
    const { value } = this.#kind;
    return value === quiet ? kind !== 'heartbeat' : !value || value === kind;
  }

  /** One that just came. */
  add(event) {
    if (!this.#live || this.#seen.has(event.seq) || !this.#wants(event)) return;
    this.#seen.add(event.seq);
    this.#list.prepend(item(event));
    for (let last; this.#list.children.length > shownMax && (last = this.#list.lastChild);) {
      this.#seen.delete(Number(last.dataset.seq));
      this.#before = String(Number(last.dataset.seq) + 1);
      this.#more.hidden = false;
      last.remove();
    }
  }

  /** Shows the event, wherever it stands. */
  async reveal(seq) {
    let found = document.getElementById(`event-${seq}`);
    if (!found) {
      this.#kind.value = '';
      await this.load(seq);
      found = document.getElementById(`event-${seq}`) ?? this.#list.firstChild;
    }
    if (!found) return;
    for (const old of this.#list.querySelectorAll('.meant')) old.classList.remove('meant');
    found.classList.add('meant');
    found.firstChild.open = true;
    found.scrollIntoView({ block: 'center' });
    found.querySelector('summary').focus({ preventScroll: true });
  }
}
