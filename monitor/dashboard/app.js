// Where every page begins: who is here, and which page it is.

import { access, askAccess, logIn } from './api.js';
import { startAlerts } from './alerts.js';
import { startList } from './list.js';
import { startOverview } from './overview.js';
import { startSession } from './session.js';
import { buildTop } from './top.js';

const main = document.getElementById('main');

/** The token in the address that the monitor printed: used once, and kept nowhere. */
async function useToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  history.replaceState(null, '', location.pathname + location.search);
  await logIn(token);
}

async function begin() {
  await useToken();
  await askAccess().catch(() => {});  // it cannot be reached: the stream says so
  const { page } = main.dataset;
  const start = { list: startList, session: startSession, alerts: startAlerts, overview: startOverview }[page];
  if (start) {
    buildTop();
    start(main);
  } else if (page === 'login' && access().name) {
    location.replace(location.pathname === '/login' ? '/' : location.pathname + location.search);
  }
}

begin();
