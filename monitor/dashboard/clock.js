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
