// @ts-check
// A form that sends a request which only reads, as the signed-in user, and shows the answer.
import { html, useState } from '../core/h.js';
import { ask } from '../core/api.js';
import { encodePart, prefix, queryText } from '../core/router.js';
import { apiDocs as words } from '../core/pagewords.js';
import { Payload } from './payload.js';

/** @typedef {{name: string, in: string, required?: boolean, usual?: any}} Parameter */

/**
 * @param {{path: string, params: Parameter[]}} p `path`: of the contract, such as
 *   "/api/retries/{jid}"
 */
export function TryIt({ path, params }) {
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [answer, setAnswer] = useState(/** @type {{status: number|string, text: string}|null} */ (null));
  const [sending, setSending] = useState(false);
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setSending(true);
    const failed = (/** @type {any} */ error) => ({ status: error.status || error.code, text: JSON.stringify(error.status ? error.body : error.reason, null, 2) });
    setAnswer(await ask(urlOf(path, params, values)).then(({ status, text }) => ({ status, text }), failed));
    setSending(false);
  };
  return html`<form class="stack" onSubmit=${send} aria-label=${words.tryOf(path)}><p class="small strong">${words.tryIt}</p>
    ${params.length > 0 && html`<div class="fields">${params.map((p) => html`<label key=${p.name} class="field grow"><span>${p.name}</span>
      <input class="in" required=${p.in === 'path'} placeholder=${p.usual ?? ''} spellcheck=${false} autocomplete="off" value=${values[p.name] ?? ''}
        onInput=${(e) => setValues({ ...values, [p.name]: e.target.value })} /></label>`)}</div>`}
    <div class="row"><button class="btn small" disabled=${sending}>${words.send}</button>${answer && html`<span role="status">${words.answered(answer.status)}</span>`}</div>
    ${answer && html`<${Payload} text=${answer.text} label=${words.answer} name="answer" />`}</form>`;
}

/**
 * Returns the address of a request. A parameter that was left empty is left out.
 * @param {string} path
 * @param {Parameter[]} params
 * @param {Record<string, string>} values
 */
function urlOf(path, params, values) {
  const query = queryText(Object.fromEntries(params.filter((p) => p.in === 'query').map((p) => [p.name, values[p.name]])));
  return prefix + path.replace(/\{(\w+)\}/g, (_, name) => encodePart(values[name] ?? '')) + (query && '?' + query);
}
