// Notifications of the browser: off until somebody turns them on, and only while the page is not looked at.

import { timely } from './clock.js';
import { el, linkTo, mark, put } from './element.js';
import { nameOf } from './health.js';

const key = 'notify';
// Browsers offer them to pages of this machine and of TLS only.
const isOffered = isSecureContext && 'Notification' in globalThis;

/** Somebody wants them, and the browser allows them. So a hidden page must keep its stream. */
export const isNotifying = () => isOffered && Notification.permission === 'granted' && localStorage.getItem(key) === 'on';

/** Shows that a session needs somebody. One session has at most one notification; a new one replaces it. */
export function notify({ session, title, state, reason }) {
  if (!isNotifying() || !document.hidden) return;
  const shown = new Notification(`${title}: ${nameOf(state)}`, { body: timely(reason), tag: `watchdog ${session}` });
  shown.onclick = () => {
    focus();
    location.assign(linkTo(session));
    shown.close();
  };
}

/** The button that turns them on and off; nothing where the browser offers none or blocks them. */
export function notifyButton() {
  if (!isOffered || Notification.permission === 'denied') return [];
  const button = el('button', { type: 'button', class: 'plain', id: 'notify', onclick: turn });
  const show = () => {
    const blocked = Notification.permission === 'denied';
    put(button, `Notifications ${blocked ? 'blocked' : isNotifying() ? 'on' : 'off'}`);
    mark(button, 'aria-pressed', isNotifying());
    mark(button, 'title', blocked ? 'The browser blocks notifications of this page. Its settings allow them.'
      : 'Show a notification of the browser when a session needs you and this page is in the background');
  };
  async function turn() {
    const was = isNotifying();
    if (Notification.permission === 'default') await Notification.requestPermission();
    localStorage.setItem(key, was ? 'off' : 'on');
    show();
  }
  show();
  return [button];
}
