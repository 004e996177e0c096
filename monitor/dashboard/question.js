// The question of an agent, which a person may answer here as long as its hook waits.

import { askAccess, may, post } from './api.js';
import { logInDialog, openDialog } from './actions.js';
import { wall } from './clock.js';
import { el } from './element.js';

/** Fills `node` with the question of a session's row or document, and with what can be said to it. `done` is called once it is answered. */
export function fillQuestion(node, { sessionId, question }, done = () => {}) {
  const result = el('p', { class: 'result', role: 'status' });
  const buttons = el('div', { class: 'buttons' });
  const say = async (body) => {
    if (!may('act')) await askAccess();
    if (!may('act') && !await logInDialog()) return;
    for (const button of buttons.children) button.disabled = true;
    result.className = 'result';
    result.textContent = 'Asking…';
    try {
      const { message } = await post(`/api/autonomous/sessions/${encodeURIComponent(sessionId)}/answer`, { questionId: question.questionId, ...body });
      result.textContent = message;
      buttons.remove();
      form.remove();
      done();
    } catch (refusal) {
      result.className = 'result trouble';
      result.textContent = refusal.message;
      for (const button of buttons.children) button.disabled = false;
    }
  };
  const button = (name, look, body) => el('button', { type: 'button', class: look, onclick: () => say(body) }, name);
  const isChoice = question.kind === 'choice';
  const words = el('input', { name: 'answer', 'aria-label': 'Another answer', placeholder: 'Another answer', maxlength: '1000', autocomplete: 'off' });
  const form = isChoice ? el('form', { class: 'own', onsubmit: (event) => {
    event.preventDefault();
    if (words.value.trim()) say({ text: words.value.trim() });
  } }, words, el('button', {}, 'Send')) : el('span');
  buttons.append(...(isChoice ? question.choices.map((choice) => button(choice, '', { text: choice })) : [button('Allow', 'main', { decision: 'allow' })]),
                 button(isChoice ? 'Do not answer' : 'Deny', '', { decision: 'deny' }));
  node.replaceChildren(el('p', {}, isChoice ? 'The agent asks:' : `The agent wants to use ${question.tool || 'a tool'}:`),
                       el('pre', { tabindex: '0' }, question.text), buttons, form, result,
                       el('small', {}, `Its terminal asks the same: the first answer counts. Here until ${wall(question.until)}.`));
}

/** Asks in a dialog. */
export function questionDialog(row) {
  const body = el('div', { class: 'question' });
  const close = el('button', { class: 'plain' }, 'Close');
  fillQuestion(body, row, () => close.focus());
  openDialog(el('dialog', { 'aria-labelledby': 'question-title' }, el('h2', { id: 'question-title' }, row.title), body,
                el('form', { method: 'dialog', class: 'buttons' }, close)));
}
