// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { downloads as words } from '../core/words.js';
import { Icon } from './icon.js';

/**
 * Downloads of a whole list.
 * @param {{set: string, filter: Record<string, string>}} p `set`: the list, as the API names it
 */
export function Downloads({ set, filter }) {
  const file = (/** @type {string} */ format) => ({ download: `${set}.${format}`, href: apiPath(set, [], { ...filter, format }) });
  return html`<a class="icon" title=${words.allNdjson} aria-label=${words.ndjson} ...${file('ndjson')}><${Icon} name="download" /></a>
    <a class="icon small" title=${words.allCsv} aria-label=${words.csv} ...${file('csv')}>${words.short}</a>`;
}
