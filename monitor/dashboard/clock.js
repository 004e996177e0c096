// The server's clock. The browser's own may be wrong; only how fast it goes is taken from it.

const entry = performance.getEntriesByType('navigation')[0];
let ahead = Number(document.documentElement.dataset.now) - (entry?.responseStart ?? performance.now());

/** The server's time, Unix milliseconds. */
export const now = () => performance.now() + ahead;

/** The server said what time it is. What arrives late says an earlier time, so the latest counts. */
export function heard(time) {
  if (!Number.isFinite(time)) return;
  const said = time - performance.now();
  const jumped = said < ahead - 2000;
  if (said > ahead || jumped) ahead = said;
}

/** A duration in milliseconds as people say it. */
export function spoken(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const ago = (time) => (time === null || time === undefined ? '–' : `${spoken(now() - time)} ago`);

const formats = new Map();  // made when they are used: each takes the browser a while
const format = (time, options) => {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, options));
  return formats.get(key).format(time);
};
export const fullWall = (time) => format(time, { dateStyle: 'medium', timeStyle: 'medium' });
/** A moment on the wall: only the time, where it was within the last 20 hours. */
export const wall = (time) => (now() - time < 72e6 ? format(time, { timeStyle: 'medium' }) : fullWall(time));

/** A duration in two units, rounded up: `14 min`, `2 h 14 min`, `3 d 4 h`. */
export function lasting(ms) {
  const two = (number, part, large, small) => `${Math.floor(number / part)} ${large}${number % part ? ` ${number % part} ${small}` : ''}`;
  if (ms <= 59000) return `${Math.ceil(ms / 1000)} s`;
  const minutes = Math.ceil(ms / 60000);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 2880 ? two(minutes, 60, 'h', 'min') : two(Math.ceil(minutes / 60), 24, 'd', 'h');
}

/** `21:00`, with the date where it is not today. */
const minuteHere = (time) => format(time, new Date(time).toDateString() === new Date(now()).toDateString() ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' });

/** A sentence that names when a wait ends gets that in the time of this place, and how long it is until then. */
export function timely(text) {
  return text?.replace(/\buntil (\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC/, (said, day, minute) => {
    const end = Date.parse(`${day}T${minute}Z`);
    return end > now() ? `until ${minuteHere(end)} (in ${lasting(end - now())})` : said;
  });
}

/** For what a session waits: `quota of anthropic until 21:00 (in 2 h 14 min)`; null: it does not. */
export function waitOf({ waitingFor, waitProvider, waitUntil }) {
  if (!waitingFor) return null;
  const minute = waitUntil && new Date(Math.ceil(waitUntil / 60000) * 60000).toISOString().slice(0, 16).replace('T', ' ');
  return timely(`${waitingFor}${waitProvider ? ` of ${waitProvider}` : ''}${minute ? ` until ${minute} UTC` : ''}`);
}

/** The notices about a session: what its turn left open, that its whole group waits, a child that never spoke. They change no state. */
export function noticesOf({ unfinished, groupWait, silentChild }) {
  const group = groupWait && `${groupWait.text}, since ${wall(groupWait.since)}`;
  return [unfinished, group, silentChild?.text].filter(Boolean).map((text) => text[0].toUpperCase() + text.slice(1)).join('. ');
}

/** A <time> that says how long ago, kept right by `tick`. */
export function agoElement(time) {
  const node = document.createElement('time');
  node.dateTime = new Date(time).toISOString();
  node.title = fullWall(time);
  node.dataset.ago = time;
  node.textContent = ago(time);
  return node;
}

/** Renews all that says how long ago. */
export function tick(root = document) {
  for (const node of root.querySelectorAll('time[data-ago]')) {
    const text = ago(Number(node.dataset.ago));
    if (node.textContent !== text) node.textContent = text;
  }
}
