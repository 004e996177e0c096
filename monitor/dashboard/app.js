// Where every page begins: who is here, and which page it is.

import { access, askAccess, logIn } from './api.js';
import { buildTop } from './top.js';

/** Each page has its own modules; the page's head names them, so that they come at once. */
const pages = {
  list: async () => (await import('./list.js')).startList,
  session: async () => (await import('./session.js')).startSession,
  alerts: async () => (await import('./alerts.js')).startAlerts,
  overview: async () => (await import('./overview.js')).startOverview,
};

const main = document.getElementById('main');

/** The token in the address that the monitor printed: used once, and kept nowhere. */
async function useToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  history.replaceState(null, '', location.pathname + location.search);
  await logIn(token);
}

async function begin() {
  const { page } = main.dataset;
  const module = pages[page]?.();
  await useToken();
  await askAccess().catch(() => {});  // it cannot be reached: the stream says so
  if (module) {
    buildTop();
    (await module)(main);
  } else if (page === 'login' && access().name) {
    location.replace(location.pathname === '/login' ? '/' : location.pathname + location.search);
  }
}

begin();
