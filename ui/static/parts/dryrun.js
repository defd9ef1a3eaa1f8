// @ts-check
// What it would mean to set a layer, asked with a dry run while the user enters it.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { useSettled } from './defined.js';

/** The address of a dry run has the layer as its fragment, so that each layer is another request. @param {string} url @param {any} how */
const dryRun = (url, how) => ask(url.slice(0, url.indexOf('#')), { ...how, method: 'PUT', body: decodeURIComponent(url.slice(url.indexOf('#') + 1)) });

/**
 * Shows what a dry run answers, or what is wrong with the layer.
 * @param {{kind: string, name: string, layer: string, label: string, none: string, show: (answer: any) => any}} p
 *   `layer`: empty if there is nothing to ask about; `none`: what is shown then
 */
export function DryRun({ kind, name, layer, label, none, show }) {
  const url = layer && apiPath(kind, name, { dry_run: true }) + '#' + encodeURIComponent(layer);
  const asked = useSettled(url);
  const would = useResource(asked || null, { every: 0, keep: false, read: dryRun });
  const here = asked === url && would.url === url;
  return html`<div class="field" aria-live="polite"><span>${label}</span>
    ${!url ? html`<p class="dim small">${none}</p>`
      : would.error && asked === url ? html`<p class="bad small anywhere">${would.error.reason}</p>`
        : html`<div class=${here || !would.data ? undefined : 'stale'}>${would.data && show(would.data)}</div>`}</div>`;
}
