// @ts-check
// The charts of metrics: throughput, percentiles, heat map. One range of time for all of a page, in the URL.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { brief, millis } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { route, setQuery } from '../core/router.js';
import { Chart, ranges } from './chart.js';
import { Card, Segments } from './states.js';

const steps = [60, 300, 900, 3600, 7200, 21_600, 86_400];

/** The range that the URL names: from and to, or the last so many seconds. */
export function rangeOf() {
  const q = route.value.query;
  const [from, to] = [Number(q.get('from')), Number(q.get('to'))];
  if (from && to > from) return { from, to, name: '', step: stepFor(to - from) };
  const name = q.get('range') in ranges ? q.get('range') : '1h';
  const length = ranges[name];
  const step = stepFor(length);
  minute.value;
  const end = Math.floor(serverNow() / step) * step + step;
  return { from: end - length, to: end, name, step };
}

/** The API has minutes, hours and days; several of them make a step. @param {number} length */
const stepFor = (length) => steps.find((s) => length / s <= 130) || 86_400;

export function RangeChooser() {
  const r = rangeOf();
  return html`<${Segments} label="Range" value=${r.name} onChange=${(/** @type {string} */ v) => setQuery({ range: v === '1h' ? '' : v, from: '', to: '' })} options=${Object.keys(ranges).map((n) => [n, n])} />
    ${!r.name && html`<button class="btn small" onClick=${() => setQuery({ from: '', to: '' })}>Zoom out</button>`}`;
}

/** Metrics of the page's range. @param {{queue?: string, cls?: string}} [of] @param {number} [every] */
export function useMetrics(of = {}, every = 10_000) {
  const r = rangeOf();
  const url = apiPath('job-metrics', of.cls === undefined ? [] : of.cls, { queue: of.queue, from: Math.floor(r.from), to: Math.ceil(r.to), step: r.step });
  return { ...useResource(url, { every }), range: r, url };
}

export const zoom = (/** @type {number} */ a, /** @type {number} */ b) => setQuery({ from: Math.floor(a), to: Math.ceil(b), range: '' });
export const deploys = (/** @type {any} */ d) => (d?.deploys || []).map((/** @type {any} */ m) => ({ at: m.at, label: m.label }));

/** @param {{m: any, height?: number, tools?: any, class?: string, more?: any[]}} p more: lines over the bars */
export function Throughput({ m, height, tools, class: extra, more = [] }) {
  const s = m.data?.series || [];
  const pick = (/** @type {string} */ k) => s.map((/** @type {any} */ p) => p[k] || 0);
  const other = s.map((/** @type {any} */ p) => p.dead + p.discarded + p.expired);
  return html`<${Card} title="Throughput" class=${extra} tools=${tools}><${Chart} of=${m} title=${`Jobs in steps of ${stepText(m.data?.step_seconds)}`} height=${height} sync="page" stacked format=${brief} marks=${deploys(m.data)} onZoom=${zoom} from=${m.range.from} to=${m.range.to}
    x=${s.map((/** @type {any} */ p) => p.at)} series=${[{ label: 'succeeded', colour: '#54be7e', kind: 'bars', values: pick('success') }, { label: 'failed', colour: '#d2a106', kind: 'bars', values: pick('failed') }, { label: 'dead or dropped', colour: '#d12771', kind: 'bars', values: other }, ...more]} /><//>`;
}

/** @param {number|undefined} s */
export const stepText = (s) => (!s ? 'time' : s < 3600 ? s / 60 + ' min' : s < 86_400 ? s / 3600 + ' h' : s / 86_400 + ' d');

/** @param {{m: any, of: 'run'|'wait', oldest?: number|null, height?: number, class?: string, title?: string, more?: any[]}} p oldest: age of the oldest waiting job, in seconds; more: lines behind these */
export function Percentiles({ m, of, oldest, height, class: extra, title, more = [] }) {
  const s = m.data?.series || [];
  const pick = (/** @type {string} */ k) => s.map((/** @type {any} */ p) => p[of]?.[k] || null);
  const series = [...more, { label: 'p50', colour: '#54be7e', values: pick('p50_ms') }, { label: 'p95', colour: '#4589ff', values: pick('p95_ms') }, { label: 'p99', colour: '#d12771', values: pick('p99_ms') }];
  // A distribution of waits falls silent exactly when a queue stands still: how old the oldest job is does not.
  if (oldest) series.push(/** @type {any} */ ({ label: 'oldest waits now', colour: '#d2a106', kind: 'dash', values: s.map(() => oldest * 1000) }));
  return html`<${Card} title=${title || (of === 'run' ? 'Run time' : 'Wait before the first attempt')} class=${extra}><${Chart} of=${m} title=${of === 'run' ? 'Run time' : 'Wait'} height=${height} sync="page" log format=${millis} marks=${deploys(m.data)} onZoom=${zoom} from=${m.range.from} to=${m.range.to} x=${s.map((/** @type {any} */ p) => p.at)} series=${series} /><//>`;
}

/** @param {{m: any, of: 'run'|'wait', height?: number, class?: string}} p */
export function HeatMap({ m, of, height = 220, class: extra }) {
  const s = m.data?.series || [];
  const bounds = m.data?.bounds_ms || [];
  const name = of === 'run' ? 'Run times' : 'Waits';
  return html`<${Card} title=${name + ', how many took how long'} class=${extra}><${Chart} of=${m} title=${name} height=${height} sync="page" format=${millis} series=${[]} onZoom=${zoom} from=${m.range.from} to=${m.range.to} x=${s.map((/** @type {any} */ p) => p.at)}
    buckets=${{ bounds, rows: s.map((/** @type {any} */ p) => p[of]?.buckets || null) }} summary=${`Percentiles over all: ${m.data?.total?.[of] ? `p50 ${millis(m.data.total[of].p50_ms)}, p95 ${millis(m.data.total[of].p95_ms)}, p99 ${millis(m.data.total[of].p99_ms)}` : 'not known'}.`} /><//>`;
}

/** Jobs that did not succeed, of all that ran. @param {any} s */
export const failShare = (s) => { const n = s.success + s.failed + s.dead + s.discarded + s.expired; return n ? 1 - s.success / n : null; };
/** @param {any} s */
export const ran = (s) => s.success + s.failed + s.dead + s.discarded + s.expired;
