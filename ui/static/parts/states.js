// @ts-check
// Replacements for missing data: nothing yet, no matches, or an error. Also the frames of cards and
// pages.
import { cx, html } from '../core/h.js';
import { clock } from '../core/format.js';
import { curlOf } from '../core/api.js';
import { Icon } from './icon.js';
import { toast } from './toast.js';
import { states as words } from '../core/words.js';

/** @param {{icon?: string, title: string, children?: any}} p */
export function Empty({ icon = 'check', title, children }) {
  return html`<div class="empty"><${Icon} name=${icon} /><p class="lead">${title}</p>${children}</div>`;
}

/**
 * @param {{error: any, at?: number, refresh?: () => void}} p `at`: when the data that is still
 *   shown was read
 */
export function Failure({ error, at, refresh }) {
  if (!error) return null;
  const forbidden = error.status === 403;
  const missing = error.status === 404 || error.status === 501;
  return html`<div class="errcard" role="alert">
    <div class="row"><${Icon} name=${forbidden ? 'eye' : 'alert'} class="bad" />
      <span class="strong">${forbidden ? words.noPermission : error.status === 0 ? words.cantReachMillrace : missing ? words.notFound : words.requestFailed}</span>
      <span class="dim small">${error.status ? error.status + ' ' : ''}${error.code}</span>
      ${refresh && html`<button class="btn small" onClick=${refresh}>${words.tryAgain}</button>`}</div>
    <p class="anywhere">${error.reason}</p>
    <p class="dim small">${error.requestID && words.request(html`<code>${error.requestID}</code>`)}${at ? words.dataFrom(clock(at / 1000, true)) : ''}</p>
  </div>`;
}

/**
 * Shows an answer, below its error. Without an answer it shows nothing, because an empty list would
 * mean that there is nothing.
 * @param {{of: any, quiet?: boolean, children?: any}} p `of`: a resource; `quiet`: the error is
 *   shown elsewhere
 */
export function Answer({ of, quiet, children }) {
  return html`${!quiet && html`<${Failure} error=${of.error} at=${of.data ? of.at : 0} refresh=${of.refresh} />`}${!(of.error && !of.data) && children}`;
}

/** Copies a text, also on a page that is not secure. @param {string} text @param {string} [what] */
export async function copy(text, what = words.copied) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const before = /** @type {HTMLElement} */ (document.activeElement);
    const area = document.createElement('textarea');
    area.value = text;
    area.setAttribute('readonly', '');
    (document.querySelector('dialog[open]') || document.body).append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    before?.focus();
  }
  toast(what);
}

/**
 * @param {{url: string, method?: string, body?: any, jq?: string}} p `jq`: a filter for the items
 *   of the answer, if the API has none
 */
export function CopyCurl({ url, method, body, jq }) {
  const rest = jq ? ` | jq '.items[] | ${jq.replaceAll("'", "'\\''")}'` : '';
  return html`<button class="icon" title=${words.copyAsCurl} aria-label=${words.copyAsCurl} onClick=${() => copy(curlOf(url, { method, body }) + rest, words.copiedAsCurl)}>
    <${Icon} name="api" /></button>`;
}

/**
 * A message above the content. One that is bad is an alert.
 * @param {{look?: 'bad'|'info', icon?: string, tools?: any, children?: any}} p
 */
export function Banner({ look, icon, tools, children }) {
  return html`<div class=${cx('banner', look)} role=${look === 'bad' ? 'alert' : 'status'}>
    ${icon && html`<${Icon} name=${icon} />`}<span>${children}</span>${tools && html`<div class="tools">${tools}</div>`}</div>`;
}

/** @typedef {[string, any, any, string?]} Counter the name, the value, a note, and a link */

/**
 * A row of numbers. It keeps its height while they are not known.
 * @param {{label: string, of: Counter[], width: 4|6|8}} p `width`: how many are beside each other
 */
export function Counters({ label, of, width }) {
  return html`<section class="card flush" aria-label=${label}><dl class=${'counters n' + width}>${of.map(([name, value, note, to]) => html`<div key=${name}>
    <dt>${name}</dt><dd>${to ? html`<a href=${to}>${value}</a>` : value}</dd>
    <dd class="note" title=${typeof note === 'string' ? note : ''}>${note || '\u00a0'}</dd></div>`)}</dl></section>`;
}

/** @param {{title: string, tools?: any, children?: any, class?: string, flush?: boolean}} p */
export function Card({ title, tools, children, class: extra, flush }) {
  return html`<section class=${'card ' + (flush ? 'flush ' : '') + (extra || '')} aria-label=${title}>
    <div class="head"><h2>${title}</h2>${tools && html`<div class="tools">${tools}</div>`}</div>${children}</section>`;
}

/**
 * @param {{crumbs?: [string, string][], title: any, badge?: any, children?: any, after?: any}} p
 */
export function Title({ crumbs = [], title, badge, children, after }) {
  return html`<div class="title"><h1>${crumbs.map(([text, to]) => html`<a href=${to}>${text}</a><span class="sep">›</span>`)}<span class="cut">${title}</span></h1>
    ${badge !== undefined && badge !== null && html`<span class="badge">${badge}</span>`}${after}<div class="tools">${children}</div></div>`;
}

/**
 * @param {{value: string, options: [string, string][], onChange: (v: string) => void, label:
 *   string}} p
 */
export function Segments({ value, options, onChange, label }) {
  return html`<div class="seg" role="group" aria-label=${label}>${options.map(([v, text]) => html`
    <button type="button" aria-pressed=${String(v === value)} onClick=${() => onChange(v)}>${text}</button>`)}</div>`;
}

const looks = {
  ok: ['check', 'ok'], running: ['check', 'ok'], live: ['check', 'ok'], idle: ['dash', 'dim'], done: ['check', 'ok'], quiet: ['quiet', 'warn'], stopping: ['stop', 'warn'],
  lost: ['alert', 'bad'], no_consumers: ['alert', 'bad'], saturated: ['alert', 'bad'], down: ['alert', 'bad'], stopped: ['alert', 'bad'], flow: ['warn', 'warn'], paused: ['pause', 'warn'],
  under_way: ['live', 'info'], cancelled: ['x', 'dim'], interrupted: ['warn', 'warn'], failed: ['alert', 'bad'], held: ['pause', 'warn'], critical: ['alert', 'bad'], warning: ['warn', 'warn'],
  success: ['check', 'ok'], dead: ['dead', 'bad'], discarded: ['trash', 'dim'], expired: ['clock', 'warn'], undone: ['undo', 'info'], undoing: ['undo', 'info'],
  active: ['check', 'ok'], incomplete: ['alert', 'bad'], governed: ['check', 'ok'], switching: ['live', 'info'], draining: ['clock', 'info'], full: ['alert', 'warn'],
  suspended: ['warn', 'warn'], bypassed: ['alert', 'bad'], waiting: ['clock', 'info'], delivered: ['out', 'info'], retry: ['retry', 'warn'], period: ['clock', 'dim'],
};
/** A state, as an icon, a word and a colour. @param {{state: string, text?: string}} p */
export function State({ state, text }) {
  const [icon, colour] = looks[state] || ['dot', 'dim'];
  return html`<span class=${'state ' + colour}><${Icon} name=${icon} small />${text || words.named[state] || state.replaceAll('_', ' ')}</span>`;
}

/** How much of something is used. @param {{part: number, text?: string, label?: string}} p */
export function Util({ part, text, label }) {
  const p = Math.max(0, Math.min(1, part || 0));
  return html`<div class="util"><div class=${cx('bar', p > 0.95 && 'warn')} role="meter" aria-label=${label || words.inUse}
    aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(p * 100)}>
    <i style=${{ width: p * 100 + '%' }}></i></div><span class="num nowrap">${text}</span></div>`;
}
