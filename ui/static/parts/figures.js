// @ts-check
// The figures of a chart as a table.
import { html } from '../core/h.js';
import { absolute } from '../core/format.js';
import { common, charts as words } from '../core/words.js';
import { Table } from './table.js';

/** @param {{p: any}} q `p`: what the chart gets */
export function Figures({ p }) {
  const rows = p.x.map((/** @type {number} */ at, /** @type {number} */ i) => ({ at, i }));
  const more = p.buckets ? [{ id: 'n', label: common.jobs, right: true, cell: (r) => (p.buckets.rows[r.i] || []).reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0) }]
    : p.series.map((/** @type {import('./chart.js').Series} */ s) => ({ id: s.label, label: s.label, right: true, cell: (r) => p.format(s.values[r.i] ?? null) }));
  const time = (r) => {
    const to = p.href?.(r.i);
    return to ? html`<a class="linkish" href=${to}>${absolute(r.at)}</a>` : absolute(r.at);
  };
  const columns = [{ id: 'at', label: common.time, always: true, head: true, cell: time }, ...more];
  return html`<div class="figures" tabindex="0" role="region" aria-label=${words.asTable(p.title)}>
    <${Table} id="figures" caption=${p.title} rowKey=${(r) => String(r.at)} rows=${rows} still=${false} columns=${columns} /></div>`;
}
