// @ts-check
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { Icon } from './icon.js';

/** @param {{page: number, size: number, items: number, total: number|undefined, atLeast?: number, pages?: number, more?: boolean, onPage: (p: number) => void, onSize: (s: number) => void, what: string}} p */
export function Pager({ page, size, items, total, atLeast, pages, more, onPage, onSize, what }) {
  const from = items ? (page - 1) * size + 1 : 0;
  const of = total !== undefined ? ' of ' + count(total) : atLeast !== undefined ? ' of at least ' + count(atLeast) : '';
  const last = pages !== undefined ? page >= pages : !more;
  return html`<nav class="pager" aria-label="Pages of the list"><span class="num">${items ? `${count(from)}–${count(from + items - 1)}${of}` : '0' + of} ${what}</span>
    <div class="tools"><label class="row"><span class="small">Rows</span><select class="in small" aria-label="Rows per page" value=${String(size)} onChange=${(/** @type {any} */ e) => onSize(Number(e.target.value))}>
      ${[20, 50, 100, 200, 500].map((n) => html`<option value=${String(n)} selected=${n === size}>${n}</option>`)}</select></label>
      <button class="btn small" disabled=${page <= 1} onClick=${() => onPage(page - 1)} aria-label="Previous page"><${Icon} name="left" small /></button>
      <span class="num small">Page ${count(page)}${pages ? ' of ' + count(Math.max(1, pages)) : ''}</span>
      <button class="btn small" disabled=${last} onClick=${() => onPage(page + 1)} aria-label="Next page"><${Icon} name="right" small /></button></div></nav>`;
}
