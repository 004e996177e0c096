// The colours of the page, for what is drawn.

const same = { idle: 'unknown', cancelled: 'unknown', completed: 'unknown', failed: 'stuck', incomplete: 'slow', needs_input: 'needs', waiting: 'blocked' };

/** Gives the colour of a state, or of any name that style.css has, as it is now: it changes with the scheme. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const known = new Map();
  return (name) => {
    if (!known.has(name)) known.set(name, style.getPropertyValue(`--${same[name] ?? name}`).trim() || '#888');
    return known.get(name);
  };
}
