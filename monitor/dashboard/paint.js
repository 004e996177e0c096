// The colours of the page, for what is drawn.

const same = { idle: 'unknown', cancelled: 'unknown', completed: 'unknown', failed: 'stuck', incomplete: 'slow', needs_input: 'needs', your_turn: 'accent', waiting: 'blocked' };

let known = new Map();
for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)'])
  matchMedia(query).addEventListener('change', () => { known = new Map(); });

/** Gives the colour of a state, or of any name that style.css has, as it is now: it changes with the scheme. */
export function palette() {
  let style = null;  // asked for once, where a colour is not known yet: the browser may have to lay the page out for it
  return (name) => {
    if (!known.has(name)) {
      style ??= getComputedStyle(document.documentElement);
      known.set(name, style.getPropertyValue(`--${same[name] ?? name}`).trim() || '#888');
    }
    return known.get(name);
  };
}

const pale = { progressing: 0.55, starting: 0.45, slow: 0.7, idle: 0.35, your_turn: 0.35, completed: 0.35, cancelled: 0.35, unknown: 0.35 };

/** How strong the colour of a state is drawn: those that need no look are pale, so that trouble is seen from afar. */
export const paleness = (state) => pale[state] ?? 1;
