// @ts-check
// Notifications in the corner: what was done, for a while, with an undo if there is one.
import { html, signal } from '../core/h.js';
import { signedOut } from '../core/api.js';
import { notes } from '../core/overlays.js';
import { onSignOut } from '../core/session.js';
import { Icon } from './icon.js';
import { common, toast as words } from '../core/words.js';

/**
 * @typedef {{bad?: boolean, undo?: () => any, of?: Of, to?: string, toText?: string}} More
 * @typedef {{set: string, jid?: string, name?: string}} Of the entry that it concerns, or the definition
 * @typedef {More & {id: number, text: string}} Toast
 */

/** @type {import('../../vendor/signals.js').Signal<Toast[]>} */
const toasts = signal([]);
let last = 0;

/** The text for screen readers, in one polite region. */
const said = signal('');
/** @param {string} text */
export const say = (text) => { said.value = text; };

onSignOut(() => {
  toasts.value = [];
  say('');
});

/** @param {string} text @param {More} [more] */
export function toast(text, more = {}) {
  if (signedOut.value) return;
  const id = ++last;
  toasts.value = [...toasts.value.slice(-3), { id, text, ...more }];
  say(text);
  leave(() => drop(id), more.undo || more.bad ? 10_000 : 5000);
}

/**
 * Removes a notification after some time, but not while the pointer or the focus is on it.
 * @param {() => void} go
 * @param {number} ms
 */
export const leave = (go, ms) => { setTimeout(() => (document.querySelector('.toasts:is(:hover, :focus-within)') ? leave(go, 2000) : go()), ms); };

/** @param {number} id */
const drop = (id) => { toasts.value = toasts.value.filter((t) => t.id !== id); };

/**
 * Withdraws offers to undo actions on entries or definitions, because another action changes these
 * now.
 * @param {(of: Of) => boolean} these
 */
export const overtaken = (these) => { toasts.value = toasts.value.filter((t) => !t.undo || !t.of || !these(t.of)); };

/** Shows an error, in the words of the API. @param {any} error */
export const failed = (error) => toast(error?.reason || String(error?.message || error), { bad: true });

export function Toasts() {
  return html`<div class="toasts" role="region" aria-label=${words.notifications}>
    ${notes.value.map((Note) => html`<${Note} />`)}
    ${toasts.value.map((t) => html`<div key=${t.id} class=${'toast' + (t.bad ? ' bad' : '')} role=${t.bad ? 'alert' : undefined}>
      <${Icon} name=${t.bad ? 'alert' : 'check'} class=${t.bad ? 'bad' : 'ok'} />
      <span class="grow anywhere">${t.text}</span>
      ${t.undo && html`<button class="btn small" onClick=${() => { drop(t.id); t.undo(); }}><${Icon} name="undo" small />${common.undo}</button>`}
      ${t.to && html`<a class="btn small" href=${t.to}>${t.toText}</a>`}
      <button class="icon" aria-label=${common.dismiss} onClick=${() => drop(t.id)}><${Icon} name="x" small /></button>
    </div>`)}
  </div><div class="sr" aria-live="polite">${said.value}</div>`;
}
