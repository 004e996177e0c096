// The keyboard: one place that knows which key does what, and can say so.

import { el } from './element.js';

const known = [];

/** `keys` as `KeyboardEvent.key`; `run` may return false: then the browser goes on with it. */
export function onKey(keys, words, run) {
  known.push({ keys, words, run });
}

const typing = (node) => node.closest?.('input, textarea, select, [contenteditable]') !== null;

const names = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc' };

export function showKeys() {
  const rows = known.map(({ keys, words }) => [
    el('dt', {}, ...keys.flatMap((key) => [el('kbd', {}, names[key] ?? key), ' '])), el('dd', {}, words)]);
  const dialog = el('dialog', { class: 'keys', 'aria-labelledby': 'keys-title' },
    el('h2', { id: 'keys-title' }, 'Keys'), el('dl', {}, ...rows.flat()),
    el('form', { method: 'dialog' }, el('button', {}, 'Close')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

onKey(['?'], 'show these keys', showKeys);

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return;
  if (typing(event.target) && event.key !== 'Escape') return;
  const found = known.find(({ keys }) => keys.includes(event.key));
  if (found && found.run(event) !== false) event.preventDefault();
});
