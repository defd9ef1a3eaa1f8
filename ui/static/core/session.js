// @ts-check
// Who looks, and what they may.
import { computed, effect, signal, untracked } from './h.js';
import { apiPath, ask, signedOut } from './api.js';
import { frame as words } from './words.js';

/** What /api/whoami said. @type {import('../../vendor/signals.js').Signal<any>} */
export const whoami = signal(null);
export const mayAct = computed(() => !!whoami.value?.may_act);
export const mayAdminister = computed(() => !!whoami.value?.may_administer);

/** Why something cannot be done, or nothing. */
export const whyNot = computed(() => {
  const w = whoami.value;
  if (!w || w.may_act) return '';
  return w.read_only ? words.readOnly : words.accountReadOnly;
});

/** Calls what is given when nobody is signed in any more: what somebody did and saw is not for the next one. @param {() => void} forget */
export const onSignOut = (forget) => effect(() => { if (signedOut.value) untracked(forget); });

/** Asks who is signed in. */
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
