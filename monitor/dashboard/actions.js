// The actions that a person can take on a session. Each dialog says first what will happen, and then how it ended.

import { askAccess, logIn, may, post } from './api.js';
import { el } from './element.js';

/** Shows a dialog, which is gone once it is closed. */
export function openDialog(dialog) {
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks for a token; `done` is called once it was the right one. */
function logInForm(done) {
  const token = el('input', { type: 'password', name: 'token', id: 'token', required: true, autocomplete: 'current-password' });
  const trouble = el('p', { class: 'trouble', role: 'alert' });
  return el('form', { class: 'login', onsubmit: async (event) => {
    event.preventDefault();
    trouble.textContent = '';
    const refusal = await logIn(token.value.trim());
    if (refusal) {
      trouble.textContent = refusal;
      token.select();
    } else {
      done();
    }
  } },
  el('label', { for: 'token' }, 'Token'), token,
  el('p', { class: 'hint' }, 'It is in the address that the monitor printed when it started, and in its token file.'),
  trouble, el('button', { class: 'main' }, 'Log in'));
}

/** True once the browser is logged in; false if the person gave up. */
export function logInDialog() {
  return new Promise((done) => {
    const dialog = el('dialog', { 'aria-labelledby': 'login-title' }, el('h2', { id: 'login-title' }, 'Log in'),
      logInForm(() => { done(true); dialog.close(); }),
      el('form', { method: 'dialog' }, el('button', { class: 'plain' }, 'Back')));
    openDialog(dialog).addEventListener('close', () => done(false));
  });
}

/** `what`: {title, happens, verb, path, body, answer(reply), harm, reasoned, scope}. */
export async function act(what) {
  const { scope = 'act' } = what;
  if (!may(scope)) await askAccess();
  if (!may(scope) && !await logInDialog()) return;
  const reason = el('input', { id: 'reason', name: 'reason', maxlength: '1000', autocomplete: 'off' });
  const result = el('p', { class: 'result', role: 'status' });
  const go = el('button', { class: what.harm ? 'main harm' : 'main' }, what.verb);
  const back = el('button', { type: 'button', onclick: () => dialog.close() }, 'Back');
  // The question is removed once the action is done.
  const question = [el('p', {}, what.happens), ...(what.reasoned ? [el('label', { for: 'reason' }, 'Reason (may be empty)'), reason] : [])];
  const form = el('form', { onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    result.className = 'result';
    result.textContent = 'Asking…';
    try {
      const reply = await post(what.path, { ...what.body, ...(reason.value ? { reason: reason.value } : {}) });
      result.textContent = what.answer(reply);
      for (const asked of question) asked.remove();
      title.textContent = what.title.replace(/\?$/, '');
      go.remove();
      what.done?.(reply);
      back.textContent = 'Close';
      back.focus();
    } catch (refusal) {
      result.className = 'result trouble';
      result.textContent = refusal.message;
      go.disabled = false;
      if ([401, 403].includes(refusal.status)) await askAccess();
    }
  } },
  ...question,
  result, el('div', { class: 'buttons' }, back, go));
  const title = el('h2', { id: 'act-title' }, what.title);
  const dialog = el('dialog', { 'aria-labelledby': 'act-title' }, title, form);
  openDialog(dialog);
  if (what.reasoned) reason.focus();
}

const path = (...parts) => parts.map(encodeURIComponent).join('/');

export const cancelSession = (session, title = session) => act({
  title: `Cancel session ${title}?`,
  happens: 'Its agent is asked to stop: by the reply to its next report, its hooks, or the answer of its model. A session that rests, or whose process is gone, ends at once.',
  verb: 'Cancel the session', harm: true, reasoned: true,
  path: `/api/autonomous/sessions/${path(session)}/cancel`,
  answer: ({ message }) => message,
});

export const abortTurn = (turn) => act({
  title: `Abort turn ${turn}?`,
  happens: 'The turn ends, with all that it began. The session goes on.',
  verb: 'Abort the turn', harm: true, reasoned: true,
  path: `/api/turns/${path(turn)}/abort`,
  answer: () => 'The turn is asked to end.',
});

export const abortTool = (turn, call, name) => act({
  title: `Abort ${name || 'tool'} (${call})?`,
  happens: 'Only this tool call stops. Its turn goes on with the other results.',
  verb: 'Abort the call', harm: true, reasoned: true,
  path: `/api/turns/${path(turn)}/abort-tool/${path(call)}`,
  answer: () => 'The call is asked to stop.',
});

export const askForCheck = (session, title = session) => act({
  title: `Ask a model about ${title}?`,
  happens: 'A model reads what the session did last and says whether it makes progress. The agent is not disturbed, and nothing is stopped.',
  verb: 'Ask for a check', scope: 'report', path: '/api/autonomous/check-status', body: { sessionId: session },
  answer: ({ state }) => state === 'pending' ? 'The model is being asked. Its answer will be under Model checks.' : `The check is ${state}.`,
});

export const acknowledge = (alert, title) => act({
  title: `Acknowledge the alert about ${title}?`,
  happens: 'It is noted that somebody looks after it.',
  verb: 'Acknowledge', path: `/api/alerts/${path(alert)}/acknowledge`, answer: () => 'It is acknowledged.',
});

export const snooze = (alert, title) => act({
  title: `Snooze the alert about ${title} for an hour?`,
  happens: 'Nothing is sent about it for 60 minutes.',
  verb: 'Snooze', path: `/api/alerts/${path(alert)}/snooze`, body: { minutes: 60 }, answer: () => 'Nothing is sent for an hour.',
});
