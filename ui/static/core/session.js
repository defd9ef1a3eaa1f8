// @ts-check
// The signed-in user, and the user's permissions.
import { computed, effect, signal, untracked } from './h.js';
import { apiPath, ask, signedOut } from './api.js';
import { frame as words } from './words.js';

/** The answer of /api/whoami. @type {import('../../vendor/signals.js').Signal<any>} */
export const whoami = signal(null);
export const mayAct = computed(() => !!whoami.value?.may_act);
export const mayAdminister = computed(() => !!whoami.value?.may_administer);

/** Why actions are not possible, or ''. */
export const whyNot = computed(() => {
  const w = whoami.value;
  if (!w || w.may_act) return '';
  return w.read_only ? words.readOnly : words.accountReadOnly;
});

/**
 * Calls a function when the user signs out. The next user must not see what the last one did.
 * @param {() => void} forget
 */
export const onSignOut = (forget) => effect(() => { if (signedOut.value) untracked(forget); });

/** Requests the signed-in user. */
export async function loadSession() {
  try {
    whoami.value = (await ask(apiPath('whoami'))).data;
    signedOut.value = false;
  } catch (e) {
    if (e.status !== 401) throw e;
  }
}

/** @param {any} body name and password, or a token */
export async function signIn(body) {
  whoami.value = (await ask(apiPath('session'), { method: 'POST', body, quiet: true })).data;
  signedOut.value = false;
}

export async function signOut() {
  await ask(apiPath('session'), { method: 'DELETE' }).catch(() => {});
  whoami.value = null;
  signedOut.value = true;
}
