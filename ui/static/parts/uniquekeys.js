// @ts-check
// Keys of unique jobs: which a job has, and freeing one.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { send } from './defined.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { Card, State } from './states.js';
import { Time } from './time.js';
import { toast } from './toast.js';
import { common } from '../core/words.js';
import { uniqueKeys as words } from '../core/pagewords.js';

/** Returns what holds a key, in words. @param {any} k */
export const keyState = (k) => words.states[k.state] || k.state;

/** The key, if the producer gave one. @param {{of: any}} p */
export const KeyName = ({ of: k }) => (k.key ? html`<span class="cut" title=${k.key}>${k.key}</span>`
  : html`<span class="cut dim" title=${k.hash}>${words.made(k.hash.slice(0, 8))}</span>`);

/** Returns whether a key can be freed: it is taken for a time, and no job has it. @param {any} k @param {any[]} all */
export const freeable = (k, all) => k.state === 'period' && !all.some((other) => other.hash === k.hash && other.state !== 'period');

/** Frees a key that is taken for a time. @param {any} k @param {() => void} done */
export async function freeKey(k, done) {
  const yes = await confirm({ title: words.askFree, verb: words.free, danger: true, reason: true,
    facts: [[common.key, k.key || k.hash], [common.job, k.jid], [common.since, html`<${Time} at=${k.since} past />`], [words.until, html`<${Time} at=${k.until} />`]],
    body: html`<p>${words.aboutFreeing}</p>` });
  if (!yes) return;
  if (await send({ done }, apiPath('unique-keys', k.hash), { method: 'DELETE', reason: yes.reason })) toast(words.freed(k.key || k.jid));
}

/** The keys that a job has. @param {{jid: string}} p */
export function KeysOf({ jid }) {
  const keys = useResource(apiPath('unique-keys', [], { jid }), { topic: 'jobs', every: 10_000 });
  const all = keys.data || [];
  if (!all.length) return null;
  const tools = html`<a class="btn small" href=${link('unique-keys', [], { text: all[0].key || all[0].hash })}>${common.uniqueKeys}</a>`;
  return html`<${Card} title=${words.itsKey} tools=${tools}><dl class="facts"><dt>${common.key}</dt><dd><${KeyName} of=${all[0]} /></dd>
    ${all.map((/** @type {any} */ k, /** @type {number} */ i) => html`<dt key=${k.state}>${i ? '' : common.state}</dt><dd><${State} state=${k.state} text=${keyState(k)} />
      <div class="dim small">${k.since > 0 && words.from(html`<${Time} at=${k.since} past />`)}${words.to(k.until ? html`<${Time} at=${k.until} />` : words.untilIt[k.state])}</div>
      ${mayAct.value && freeable(k, all) && html`<button class="btn small hurt" onClick=${() => freeKey(k, keys.refresh)}><${Icon} name="out" small />${words.free}</button>`}</dd>`)}</dl><//>`;
}
