// @ts-check
// The component for all dialogs. The more is at stake, the more it asks for.
import { html, signal, useLayoutEffect, useRef, useSignal, useState } from '../core/h.js';
import { cx } from '../core/h.js';
import { overlays, register } from '../core/overlays.js';
import { onSignOut } from '../core/session.js';
import { failed } from './toast.js';
import { common, dialog as words } from '../core/words.js';

/**
 * @typedef {{title: string, body?: any, facts?: [string, any][], verb: string|((value: any) =>
 *   string), danger?: boolean, typed?: string, reason?: boolean, fields?: (set: (v: any) => void,
 *   value: any) => any, value?: any, check?: (v: any) => string, wide?: boolean, send?: (value: any)
 *   => Promise<any>}} Question `send`: does what was asked. The dialog stays open until that is
 *   done, and shows its error
 */

/** @type {import('../../vendor/signals.js').Signal<(Question & {done: (v: any) => void})|null>} */
const asked = signal(null);

/** @param {any} v */
function answer(v) {
  const q = asked.value;
  asked.value = null;
  q?.done(v);
}
onSignOut(() => answer(null));

/**
 * Asks the user. Resolves to null if the answer is no.
 * @param {Question} question
 * @returns {Promise<null|{reason: string, value: any}>}
 */
export function confirm(question) {
  return new Promise((done) => { asked.value = { ...question, done }; });
}

function Dialogs() {
  const q = asked.value;
  return q && html`<${Ask} key=${q.title} q=${q} />`;
}
register(overlays, Dialogs);

/**
 * Ctrl+Enter in a field submits its form, also in a field in which Enter begins a line.
 * @param {any} e
 */
function submitKey(e) {
  if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey) || !e.target.matches('input,textarea,select')) return;
  e.preventDefault();
  e.currentTarget.requestSubmit();
}

/** @param {{q: any}} p */
function Ask({ q }) {
  const box = useRef(null);
  const cancel = useRef(null);
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState('');
  const [value, setValue] = useState(q.value);
  const [error, setError] = useState('');
  const sending = useSignal(false);
  const wrong = q.check?.(value) || '';
  const may = (!q.typed || typed.trim() === q.typed) && !wrong;
  const put = (/** @type {any} */ v) => {
    setError('');
    setValue(v);
  };
  const submit = async () => {
    if (!may || sending.value) return;
    if (!q.send) {
      answer({ reason, value });
      return;
    }
    setError('');
    sending.value = true;
    try {
      await q.send(value);
      if (asked.value === q) answer({ reason, value });
    } catch (e) {
      if (asked.value === q) setError(e.reason || e.message);
      else failed(e); // the dialog was closed meanwhile
    }
    sending.value = false;
  };
  // Immediately, not after the next frame: until then, keys would go to the page below.
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement} */ (document.activeElement);
    const dialog = box.current;
    dialog.showModal();
    (q.fields ? dialog.querySelector('input,textarea,select') || cancel.current : cancel.current).focus();
    return () => {
      dialog.close(); // nothing below an open dialog can take the focus
      before?.focus?.();
    };
  }, []);
  // The error is below the fields, which may be higher than the window.
  useLayoutEffect(() => { if (error) box.current.scrollTo(0, box.current.scrollHeight); }, [error]);
  return html`<dialog ref=${box} class=${cx(q.wide && 'wide')} aria-labelledby="ask-title" onCancel=${(/** @type {Event} */ e) => { e.preventDefault(); answer(null); }}
    onClick=${(/** @type {Event} */ e) => e.target === box.current && answer(null)}>
    <form method="dialog" onKeyDown=${submitKey} onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); submit(); }}>
      <h2 id="ask-title">${q.title}</h2>
      ${q.body && html`<div class="stack">${q.body}</div>`}
      ${q.facts && html`<dl class="facts">${q.facts.filter((f) => f[1]).map(([k, v]) => html`<dt>${k}</dt><dd>${v}</dd>`)}</dl>`}
      ${q.fields?.(put, value)}
      ${wrong && value !== q.value && html`<p class="bad" role="alert">${wrong}</p>`}
      ${error && html`<p class="bad anywhere" role="alert">${error}</p>`}
      ${q.reason && html`<label class="field"><span>${common.reason} <span class="dim">${words.reasonIsKept}</span></span>
        <input class="in" value=${reason} maxlength="500" onInput=${(e) => setReason(e.target.value)} /></label>`}
      ${q.typed && html`<label class="field"><span>${words.typeToConfirm(html`<code>${q.typed}</code>`)}</span>
        <input class="in" autocomplete="off" value=${typed} onInput=${(e) => setTyped(e.target.value)} /></label>`}
      <div class="ends">
        <button type="button" class="btn" ref=${cancel} onClick=${() => answer(null)}>${words.cancel}</button>
        <button class=${'btn ' + (q.danger ? 'danger' : 'primary')} disabled=${!may}
          aria-disabled=${sending.value || undefined}>${typeof q.verb === 'function' ? q.verb(value) : q.verb}</button>
      </div>
    </form>
  </dialog>`;
}
