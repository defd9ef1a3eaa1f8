// @ts-check
// A heat map: how many jobs took how long, in columns of time. More jobs have a stronger shade of
// one colour, because no value here is good or bad.
import { html } from '../core/h.js';
import { millis } from '../core/format.js';
import { Chart, token } from './chart.js';
import { zoom } from './charts.js';
import { Card } from './states.js';
import { charts as words } from '../core/words.js';

/** @param {any} u @param {any} p */
function paint(u, p) {
  const { bounds, rows } = p.buckets;
  const most = rows.reduce((/** @type {number} */ m, r) => Math.max(m, ...(r || [0])), 1);
  const ctx = u.ctx;
  const colour = token('--ramp', u.root);
  const step = p.x.length > 1 ? p.x[1] - p.x[0] : 60;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  ctx.fillStyle = colour;
  rows.forEach((row, /** @type {number} */ i) => {
    if (!row) return;
    const x = u.valToPos(p.x[i], 'x', true);
    const w = Math.max(1, u.valToPos(p.x[i] + step, 'x', true) - x - 1);
    for (let b = 0; b <= bounds.length; b++) {
      if (!row[b]) continue;
      const y = u.valToPos(b + 1, 'y', true);
      const h = Math.max(1, u.valToPos(b, 'y', true) - y - 1);
      ctx.globalAlpha = 0.15 + 0.85 * (Math.log1p(row[b]) / Math.log1p(most));
      ctx.fillRect(x, y, w, h);
    }
  });
  ctx.restore();
}

/** @param {{m: any, of: 'run'|'wait', height?: number, class?: string}} p */
export function HeatMap({ m, of, height = 220, class: extra }) {
  const s = m.data?.series || [];
  const bounds = m.data?.bounds_ms || [];
  const name = of === 'run' ? words.runTimeDistribution : words.waitTimeDistribution;
  return html`<${Card} title=${name} class=${extra}><${Chart} of=${m} title=${name} height=${height} sync="page" format=${millis} series=${[]}
    onZoom=${zoom} from=${m.range.from} to=${m.range.to} x=${s.map((p) => p.at)}
    buckets=${{ bounds, rows: s.map((p) => p[of]?.buckets || null), paint }} summary=${words.allJobs(m.data?.total?.[of])} /><//>`;
}
