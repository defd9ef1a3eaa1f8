// @ts-check
// Pages of a list in memory.
import { html, useEffect, useState } from '../core/h.js';
import { route, setQuery } from '../core/router.js';
import { Banner } from './states.js';
import { failed } from './toast.js';
import { pager as words } from '../core/words.js';

/**
 * Returns the page that the URL selects from a list in memory. A long list is never drawn as a
 * whole, because each row costs time at every update.
 * @param {any[]} all
 */
export function paged(all) {
  const query = route.value.query;
  const size = Number(query.get('page_size')) || 50;
  const pages = Math.max(1, Math.ceil(all.length / size));
  const page = Math.min(pages, Number(query.get('page')) || 1);
  return { rows: all.slice((page - 1) * size, page * size), page, size, pages };
}

/**
 * The pager of such a list, which is loaded when a list is longer than a screen.
 * @param {{of: ReturnType<typeof paged>, total: number, what: string}} p
 */
export function PagerOf({ of, total, what }) {
  const [Pager, set] = useState(/** @type {any} */ (null));
  const long = total > 20;
  useEffect(() => { if (long) import('./pager.js').then((p) => set(() => p.Pager), failed); }, [long]);
  return long && Pager && html`<${Pager} page=${of.page} size=${of.size} items=${of.rows.length} total=${total} pages=${of.pages} what=${what}
    onPage=${(/** @type {number} */ n) => setQuery({ page: n === 1 ? '' : n })} onSize=${(/** @type {number} */ n) => setQuery({ page_size: n, page: '' })} />`;
}

/** Says that a list has more items than are shown. @param {{list: any, what: string}} p */
export const Cut = ({ list, what }) => list.left > 0 && html`<${Banner}>${words.cut(list.data.length, what, list.left)}<//>`;
