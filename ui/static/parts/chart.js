// @ts-check
// The component for all charts: lines and stacked bars over time, or a heat map. It also offers its
// figures as a table, and a summary in words.
import { cx, html, useLayoutEffect, useRef, useState, visible } from '../core/h.js';
import { colours } from '../core/prefs.js';
import { absolute, dayOrClock, roundBounds } from '../core/format.js';
import { whenIdle } from '../core/idle.js';
import { navigate } from '../core/router.js';
import { Icon } from './icon.js';
import { failed } from './toast.js';
import { common, charts as words } from '../core/words.js';

/**
 * @typedef {{label: string, colour: string, values: (number|null)[], kind?: 'line'|'bars'|'dash',
 *   axis?: string}} Series
 */
/** @typedef {{at: number, label: string}} Mark */

export const palette = ['#54be7e', '#4589ff', '#d12771', '#d2a106', '#08bdba', '#8a3ffc', '#ba4e00', '#33b1ff', '#007d79', '#d4bbff'];

/**
 * Returns a colour token in the present theme. An element that uses the token resolves
 * light-dark().
 * @param {string} name
 * @param {Element} [within]
 */
export function token(name, within = document.body) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  within.append(probe);
  const c = getComputedStyle(probe).color;
  probe.remove();
  return c;
}

/**
 * @param {{title: string, x: number[], series: Series[], format: (n: number|null) => string,
 *   height?: number, marks?: Mark[], log?: boolean, sync?: string, stacked?: boolean, onZoom?:
 *   (from: number, to: number) => void, href?: (i: number) => string, buckets?: {bounds: number[],
 *   rows: (number[]|null)[], paint: (u: any, p: any) => void}, summary?: string, now?: number,
 *   from?: number, to?: number, of?: {data: any, error: any}}} p `of`: the answer with the figures;
 *   `href`: the link of a step, or ''
 */
export function Chart(p) {
  const box = useRef(null);
  const plot = useRef(null);
  const [asTable, setAsTable] = useState(false);
  const [Figures, setFigures] = useState(/** @type {any} */ (null)); // loaded at the first use
  const [cursor, setCursor] = useState(/** @type {number|null} */ (null));
  const latest = useRef(p);
  latest.current = p;
  const height = p.height || 200;
  const lacking = lacks(p.of);
  const empty = !!lacking || !p.x.length || !figures(p);
  const shape = [colours.value, asTable, empty, p.log, p.stacked, height, p.series.map((s) => s.label + s.colour + (s.kind || '')).join('|')].join();
  const single = !p.buckets && !asTable && p.series.length === 1;
  const drawn = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (asTable || empty || !box.current) return undefined;
    const observer = new ResizeObserver(() => { const w = box.current?.clientWidth; if (w && w !== plot.current?.width) plot.current?.setSize({ width: w, height }); });
    const draw = () => {
      plot.current = new /** @type {any} */ (window).uPlot(options(latest, height, box.current.clientWidth, setCursor), stack(latest.current), box.current);
      drawn.current = { plot: plot.current, p: latest.current };
      observer.observe(box.current);
    };
    // A page's first charts wait until its text and controls are drawn.
    const callOff = drawn.current ? null : whenIdle(draw);
    if (drawn.current) draw();
    return () => {
      callOff?.();
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  // A chart is drawn again only when its figures have changed, not whenever its page is drawn.
  useLayoutEffect(() => {
    if (!plot.current || (drawn.current?.plot === plot.current && same(drawn.current.p, p))) return;
    drawn.current = { plot: plot.current, p };
    plot.current.setData(stack(p));
  });
  const turn = () => {
    setAsTable(!asTable);
    if (!Figures) import('./figures.js').then((f) => setFigures(() => f.Figures), failed);
  };
  const i = cursor === null ? null : cursor;
  // A chart that is loading keeps its height. An empty chart needs little.
  return html`<figure class="chart" style=${{ '--h': (empty && !lacking ? Math.min(height, 72) : height) + 'px' }}>
    <figcaption class="sr">${p.title}. ${lacking || p.summary || summary(p)}${released(p)}</figcaption>
    ${asTable ? Figures && html`<${Figures} p=${p} />` : empty ? html`<div class="nodata">${lacking || words.noDataInThisRange}</div>` : html`<div class="plot" ref=${box} aria-hidden="true"></div>`}
    <div class=${cx('legend', single && 'one')}>
      ${!empty && (!single || i !== null) && p.series.map((s) => html`<span key=${s.label}><${Swatch} s=${s} />${s.label}
        ${i !== null && html` <b>${p.format(s.values[i] ?? null)}</b>`}</span>`)}
      ${!empty && p.buckets && html`<span>${words.few}<i class="sw ramp"></i>${words.many}</span>`}
      ${i !== null && p.x[i] && html`<span class="num">${absolute(p.x[i]).slice(5, 16)}</span>`}
      ${!empty && html`<button class="icon" title=${asTable ? words.showAsAChart : words.showAsATable}
        aria-label=${words.seeAs(asTable ? common.chart : words.table, p.title)} aria-pressed=${String(asTable)}
        onClick=${turn}><${Icon} name=${asTable ? 'chart' : 'rows'} small /></button>`}</div>
  </figure>`;
}

/** The colour of a series. @param {{s: Series}} p */
const Swatch = ({ s }) => html`<i class=${cx('sw', s.kind === 'dash' && 'dash')} style=${{ '--colour': s.colour }}></i>`;

/**
 * Returns the text of a chart without figures, which must not look like zero.
 * @param {{data: any, error: any}|undefined} of
 */
const lacks = (of) => (!of || of.data ? '' : of.error ? words.couldNotBeLoaded : words.loading);

/** Returns whether there is anything to draw. Bars of height 0 do not count. @param {any} p */
function figures(p) {
  if (p.buckets) return p.buckets.rows.some(Boolean);
  return p.series.some((/** @type {Series} */ s) => s.values.some((v) => (p.stacked ? v : v !== null && v !== undefined)));
}

/** Returns whether two charts show the same figures. @param {any} a @param {any} b */
function same(a, b) {
  const equal = (/** @type {any[]} */ x, /** @type {any[]} */ y) => x.length === y.length && x.every((v, i) => v === y[i]);
  return a.from === b.from && a.to === b.to && equal(a.x, b.x)
    && a.series.length === b.series.length && a.series.every((/** @type {Series} */ s, /** @type {number} */ i) => equal(s.values, b.series[i].values))
    && equal(a.buckets?.rows || [], b.buckets?.rows || []) && JSON.stringify(a.marks) === JSON.stringify(b.marks) && Math.abs((a.now || 0) - (b.now || 0)) < 30;
}

/** @param {any} p */
function summary(p) {
  if (p.buckets) return '';
  return p.series.map((/** @type {Series} */ s) => {
    const v = s.values.filter((n) => n !== null && n !== undefined);
    return v.length ? words.summary(s.label, p.format(v.at(-1)), p.format(v.reduce((a, b) => Math.max(a, b), -Infinity))) : words.noneOf(s.label);
  }).join('; ') + '.';
}

/** @param {any} p */
const released = (p) => (p.marks?.length ? words.deploys(p.marks.map((/** @type {Mark} */ m) => words.deploy(m.label, absolute(m.at)))) : '');

/** Stacked series are drawn as sums, the highest first. @param {any} p */
function stack(p) {
  if (p.buckets) return [p.x, p.x.map(() => null)];
  if (!p.stacked) return [p.x, ...p.series.map((/** @type {Series} */ s) => s.values)];
  /** @type {number[]} */
  let sum = p.x.map(() => 0);
  const all = p.series.map((/** @type {Series} */ s) => {
    if (s.kind !== 'bars') return s.values;
    sum = sum.map((n, i) => n + (s.values[i] || 0));
    return sum;
  });
  return [p.x, ...all];
}

/** Charts with the same key follow the pointer, and nothing else. */
const filters = { pub: (/** @type {string} */ type) => type === 'mousemove' || type === 'mouseleave' };

/** @param {any} latest */
function yScale(latest) {
  const p = latest.current;
  if (p.buckets) return { range: [0, p.buckets.bounds.length + 1] };
  if (p.log) return { distr: 3, range: (u, /** @type {number} */ a, /** @type {number} */ b) => logRange(a, b) };
  return { range: (u, /** @type {number} */ a, /** @type {number} */ b) => [0, b > 0 ? b * 1.1 : 1] };
}

/** Returns what chooses the ticks of the y axis, if it is not uPlot. @param {any} latest */
function yTicks(latest) {
  const p = latest.current;
  if (p.buckets) return () => roundBounds(p.buckets.bounds);
  return p.log ? () => logTicks(latest.current) : undefined;
}

/**
 * @param {any} latest
 * @param {number} height
 * @param {number} width
 * @param {(i: number|null) => void} setCursor
 */
function options(latest, height, width, setCursor) {
  const p = latest.current;
  const uPlot = /** @type {any} */ (window).uPlot;
  const [dim, line, card] = [token('--dim'), token('--line'), token('--card')];
  const font = '11px Inter, sans-serif';
  const axis = { stroke: dim, font, grid: { stroke: line, width: 1, dash: [3, 3] }, ticks: { show: false } };
  const bars = uPlot.paths.bars({ size: [0.8, 24], align: 1 });
  const order = p.series.map((/** @type {Series} */ s) => ({
    label: s.label, stroke: s.colour, points: { show: false }, spanGaps: false,
    width: s.kind === 'bars' ? 0 : 1.8, dash: s.kind === 'dash' ? [5, 4] : undefined, fill: s.kind === 'bars' ? s.colour : undefined,
    paths: s.kind === 'bars' ? (p.stacked ? () => null : bars) : p.stacked ? uPlot.paths.stepped({ align: 1, extend: true }) : undefined,
  }));
  return {
    width: width || 400, height, padding: [() => (latest.current.now || latest.current.marks?.length ? 14 : 8), 16, 0, 0], legend: { show: false },
    scales: { x: { time: true, range: () => xRange(latest.current) }, y: yScale(latest) },
    axes: [
      {
        ...axis, gap: 7, space: 70, size: (u, /** @type {string[]} */ all) => (all?.some((v) => v.includes('\n')) ? 42 : 28),
        values: (u, /** @type {number[]} */ all) => all.map((t) => dayOrClock(t, all)),
      },
      {
        ...axis, size: 56, gap: 4, space: height < 100 ? 14 : 34, incrs: p.stacked ? whole : undefined, splits: yTicks(latest),
        values: (u, /** @type {number[]} */ all) => all.map((n) => (n === null ? null : p.buckets ? boundText(p, n) : p.format(n))),
        // The filter of uPlot shows only powers of ten.
        filter: p.log ? (u, /** @type {number[]} */ all) => all : undefined,
      },
    ],
    series: [{}, ...(p.buckets ? [{ paths: () => null, points: { show: false } }] : order)],
    cursor: { y: false, points: { show: false }, drag: { x: !!p.onZoom, y: false, setScale: false }, sync: p.sync ? { key: p.sync, setSeries: false, filters } : undefined },
    hooks: {
      ready: [(u) => u.over.addEventListener('click', () => follow(u, latest.current))],
      setCursor: [(u) => setCursor(u.cursor.idx ?? null)],
      setSelect: [(u) => select(u, latest.current)],
      drawAxes: [(u) => fill(u, latest.current)],
      draw: [(u) => marks(u, latest.current, dim, card)],
    },
  };
}

/**
 * Zooms to the selected range. A tiny movement of the pointer is meant as a click, but uPlot reports
 * a click only without any movement.
 * @param {any} u
 * @param {any} p
 */
function select(u, p) {
  const { left, width } = u.select;
  if (width > 4) p.onZoom?.(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
  else follow(u, p);
  u.setSelect({ left: 0, width: 0 }, false);
}

/** Draws what uPlot does not. @param {any} u @param {any} p */
function fill(u, p) {
  if (p.buckets) p.buckets.paint(u, p);
  else if (p.stacked) bottomUp(u, p);
}

/** Opens the link of the step under the pointer. @param {any} u @param {any} p */
function follow(u, p) {
  const at = u.posToVal(u.cursor.left, 'x');
  const to = p.href?.(p.x.findLastIndex((/** @type {number} */ t) => t <= at));
  if (to) navigate(to);
}

/** Jobs are counted in whole numbers. */
const whole = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

/**
 * Draws stacked bars as sums, the largest first, so that none hides a smaller one.
 * @param {any} u
 * @param {any} p
 */
function bottomUp(u, p) {
  const n = p.series.filter((/** @type {Series} */ s) => s.kind === 'bars').length;
  const ctx = u.ctx;
  const half = u.data[0].length > 1 ? Math.abs(u.valToPos(u.data[0][1], 'x', true) - u.valToPos(u.data[0][0], 'x', true)) : 20;
  const w = Math.max(1, Math.min(half * 0.8, 24 * devicePixelRatio));
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  for (let s = n; s >= 1; s--) {
    ctx.fillStyle = p.series[s - 1].colour;
    for (let i = 0; i < u.data[0].length; i++) {
      const v = u.data[s][i];
      if (!v || (s > 1 && v === u.data[s - 1][i])) continue;
      const x = u.valToPos(u.data[0][i], 'x', true);
      const y = u.valToPos(v, 'y', true);
      ctx.fillRect(x, y, w, u.bbox.top + u.bbox.height - y);
    }
  }
  ctx.restore();
}

/** @param {any} p */
const xRange = (p) => [p.from ?? p.x[0], p.to ?? (p.x.at(-1) + (p.x.length > 1 ? p.x[1] - p.x[0] : 60))];
/**
 * Values for a log axis of milliseconds: powers of ten up to seconds, then minutes, hours and days.
 */
const spans = [1, 10, 100, 1e3, 1e4, 6e4, 6e5, 36e5, 36e6, 864e5, 864e6, 864e7];
/**
 * Returns the range from the tick below the smallest value to the tick above the largest.
 * @param {number} a
 * @param {number} b
 */
const logRange = (a, b) => [spans.findLast((t) => t <= (a || 1)) || spans[0], spans.find((t) => t >= (b || 10) * 1.05) || spans.at(-1)];
/** @param {any} p */
function logTicks(p) {
  const v = p.series.flatMap((/** @type {Series} */ s) => s.values).filter((n) => n > 0);
  const least = v.reduce((/** @type {number} */ x, /** @type {number} */ y) => Math.min(x, y), Infinity);
  const [a, b] = logRange(least, v.reduce((/** @type {number} */ x, /** @type {number} */ y) => Math.max(x, y), 0));
  return spans.filter((t) => t >= a && t <= b);
}
/** @param {any} p @param {number} n */
const boundText = (p, n) => p.format(p.buckets.bounds[Math.min(Math.round(n) - 1, p.buckets.bounds.length - 1)]);

/**
 * Draws deploys as lines, with their names above the bars.
 * @param {any} u
 * @param {any} p
 * @param {string} colour
 * @param {string} ground
 */
function marks(u, p, colour, ground) {
  const ctx = u.ctx;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px Inter, sans-serif`;
  for (const m of [...(p.marks || []), ...(p.now ? [{ at: p.now, label: words.now }] : [])]) {
    const x = u.valToPos(m.at, 'x', true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, u.bbox.top);
    ctx.lineTo(x, u.bbox.top + u.bbox.height);
    ctx.stroke();
    ctx.textAlign = x > u.bbox.left + u.bbox.width * 0.8 ? 'right' : 'left';
    ctx.setLineDash([]);
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = ground;
    const label = ' ' + visible(m.label) + ' ';
    ctx.strokeText(label, x, u.bbox.top - 3 * devicePixelRatio);
    ctx.lineWidth = devicePixelRatio;
    ctx.fillText(label, x, u.bbox.top - 3 * devicePixelRatio);
  }
  ctx.restore();
}

/** The ranges of time that a page offers, in seconds. */
export const ranges = { '15m': 900, '1h': 3600, '6h': 21_600, '24h': 86_400, '7d': 604_800, '30d': 2_592_000 };
