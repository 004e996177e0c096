// Where every page begins: who is here, and which page it is.

import { logInForm } from './actions.js';
import { askAccess, logIn, may } from './api.js';
import { el } from './element.js';
import { startList } from './list.js';
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
  buildTop();
  if (!may('read')) {
    main.replaceChildren(el('h1', {}, 'Log in'), el('p', {}, 'This monitor shows its sessions to those who have a token.'),
                         logInForm(() => location.reload()));
  } else if (main.dataset.page === 'list') {
    startList(main);
  } else if (main.dataset.page === 'session') {
    startSession(main);
  }
}

begin();
