// @ts-check
import { html } from '../core/h.js';

/**
 * A line chart that is too small for axes.
 * @param {{values: (number|null)[], label: string, width?: number, height?: number, colour?:
 *   string}} p
 */
export function Spark({ values, label, width = 96, height = 24, colour }) {
  const v = values.map((n) => n || 0);
  const most = v.reduce((a, b) => Math.max(a, b), 0);
  if (v.length < 2) return html`<span class="dim small">–</span>`;
  if (!most) return html`<span class="dim small" role="img" aria-label=${label}>–</span>`;
  const at = v.map((n, i) => [(i / (v.length - 1)) * width, height - 2 - (n / most) * (height - 4)].map((c) => c.toFixed(1)).join(' '));
  return html`<svg class="spark" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${label}>
    <path class="area" d=${`M0 ${height}L${at.join('L')}L${width} ${height}Z`} /><path d=${'M' + at.join('L')} style=${colour ? { stroke: colour } : undefined} /></svg>`;
}
