// Elements without markup: whatever an agent said is a text, never parsed.

/** An element. Attributes by name; null and false leave one out, functions listen (`onclick`). */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Changes the text only where it differs: what is shown again costs nothing. */
export function put(node, text) {
  const now = text ?? '';
  if (node.shown === now) return;
  node.shown = now;
  node.textContent = now;
}

/** Likewise an attribute; null takes it away. */
export function mark(node, name, value) {
  if (value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A text that is put beside others: one that is written from right to left must not reorder them. */
export const isolated = (text) => (rightToLeft.test(text ?? '') ? `\u2068${text}\u2069` : text);

/** A text that is put beside another one, which does not end with it. */
export const beside = (text, other) => (text && !other?.endsWith(text) ? text : '');

export const linkTo = (session) => `/sessions/${encodeURIComponent(session)}`;
