// The page's requests to the server. Everything but events comes through these functions.

/** The error of a request that failed; status 0: the server cannot be reached. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: 'no-store', ...options });
  } catch {
    throw new Refusal(0, 'The monitor cannot be reached.');
  }
  const text = await response.text();
  let body = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    body = null;
  }
  if (response.ok) return body;
  throw new Refusal(response.status, body?.error?.message ?? `The monitor answered ${response.status}.`);
}

export const get = (path) => answer(path);
export const post = (path, body = {}) => answer(path, { method: 'POST', body: JSON.stringify(body) });

/** Likewise, but null where there is no such thing. */
export async function find(path) {
  try {
    return await get(path);
  } catch (refusal) {
    if (refusal.status === 404) return null;
    throw refusal;
  }
}

const everything = { scopes: ['read', 'report', 'act'], name: null, tokenNeeded: false };
let known = everything;
let accessChanged = () => {};

/** Calls this whenever this browser may do something else: after a login, too. */
export const onAccess = (run) => { accessChanged = run; };

/** Asks what this browser may do. */
export async function askAccess() {
  known = (await find('/api/access')) ?? everything;
  accessChanged();
  return known;
}
export const access = () => known;
export const may = (scope) => known.scopes.includes(scope);

/** Null, or why it did not work. */
export async function logIn(token) {
  try {
    await post('/api/login', { token });
  } catch (refusal) {
    if (refusal.status === 401) return 'That is not a token of this monitor.';
    return refusal.status === 429 ? 'Too many tries. Wait a while.' : refusal.message;
  }
  await askAccess();
  return null;
}

export async function logOut() {
  await post('/api/logout');
  await askAccess();
}
