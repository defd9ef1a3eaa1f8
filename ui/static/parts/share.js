// @ts-check
import { html } from '../core/h.js';
import { percent } from '../core/format.js';

/** A part of a whole, as a bar and a number. @param {{part: number|null, bad?: boolean}} p */
export const Share = ({ part, bad }) => html`<div class="util">
  <div class=${bad ? 'bar bad' : 'bar'} aria-hidden="true"><i style=${{ width: (part || 0) * 100 + '%' }}></i></div><span class="num nowrap">${percent(part)}</span></div>`;
