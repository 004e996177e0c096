// One round of a loop: the calls that repeat, in their order, with what came back.

import { get } from './api.js';
import { el } from './element.js';
import { detailsOf } from './events.js';

const newest = '9223372036854775807';
const asked = 60;  // calls
const shownMax = 5;  // calls, where no period is seen
const parts = ['tool_call', 'tool_result', 'error', 'tool_timeout', 'message'];

/** How many of the last words make one round; 0 if they do not repeat. The oldest comes first. */
export function periodOf(words) {
  for (const rounds of [3, 2]) {
    for (let period = 1; rounds * period <= words.length; ++period) {
      const tail = words.slice(-rounds * period);
      if (tail.every((word, at) => word === tail[at % period])) return period;
    }
  }
  return 0;
}

async function newestRound(path) {
  const of = async (kind) => (await get(`${path}/events?kind=${kind}&before=${newest}&limit=${asked}`)).events.sort((a, b) => a.seq - b.seq);
  let turns = await of('tool_call');
  if (turns.length === 0) turns = await of('message');
  const exact = periodOf(turns.map(({ name, args, text }) => JSON.stringify([name, args, text])));
  const period = exact || periodOf(turns.map(({ name }) => name)) || Math.min(shownMax, turns.length);
  // The last round may be under way: the one before it has its results.
  const whole = turns.length >= 2 * period ? turns.slice(-2 * period, -period) : turns;
  const end = turns.length >= 2 * period ? turns.at(-period).seq : Infinity;
  const { events } = await get(`${path}/events?after=${whole[0].seq - 1}&limit=1000`);
  return events.filter(({ kind, seq }) => parts.includes(kind) && seq < end);
}

/** Shows one round when it is opened. */
export function roundDetails(session) {
  const list = el('ol', { class: 'round' });
  return el('details', { ontoggle: async ({ target }) => {
    if (!target.open) return;
    const events = await newestRound(`/api/autonomous/sessions/${encodeURIComponent(session)}`).catch(() => []);
    list.replaceChildren(...events.map((event) => el('li', { class: `event ${event.kind}` }, detailsOf(event))));
  } }, el('summary', {}, 'One round'), list);
}
