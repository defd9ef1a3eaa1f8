// @ts-check
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { Icon } from './icon.js';
import { common, pager as words } from '../core/words.js';

/**
 * @param {{page: number, size: number, items: number, total: number|undefined, atLeast?: number,
 *   pages?: number, more?: boolean, unplaced?: boolean, onPage: (p: number) => void, onSize: (s:
 *   number) => void, what: string}} p `unplaced`: it is not known how many items are before this
 *   page
 */
export function Pager({ page, size, items, total, atLeast, pages, more, unplaced, onPage, onSize, what }) {
  const from = (page - 1) * size + 1;
  const of = words.ofAll(total, atLeast);
  const last = pages !== undefined ? page >= pages : !more;
  const here = total === 1 && items === 1 ? '1' : unplaced ? count(items) : `${count(from)}–${count(from + items - 1)}${of}`;
  return html`<nav class="pager" aria-label=${common.pagesOfTheList}><span class="num">${items > 0 && html`${here} ${what}`}</span>
    <div class="tools"><label class="row"><span class="small">${common.rows}</span>
      <select class="in small" aria-label=${words.rowsPerPage} value=${String(size)} onChange=${(e) => onSize(Number(e.target.value))}>
      ${[20, 50, 100, 200, 500].map((n) => html`<option value=${String(n)} selected=${n === size}>${n}</option>`)}</select></label>
      <button class="btn small" disabled=${page <= 1} onClick=${() => onPage(page - 1)} aria-label=${common.previousPage}><${Icon} name="left" small /></button>
      <span class="num small">${words.page(page, pages)}</span>
      <button class="btn small" disabled=${last} onClick=${() => onPage(page + 1)} aria-label=${common.nextPage}><${Icon} name="right" small /></button></div></nav>`;
}
