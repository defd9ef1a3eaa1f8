// @ts-check
// The charts of metrics: throughput and percentiles. All charts of a page have one range of time,
// which is in the URL.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { brief, millis } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { route, setQuery } from '../core/router.js';
import { Chart, ranges } from './chart.js';
import { Card, Segments } from './states.js';
import { common, charts as words } from '../core/words.js';

const steps = [60, 300, 900, 3600, 7200, 21_600, 86_400];

/** Returns the range of the URL: from and to, or a number of seconds up to now. */
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

/** The API has minutes, hours and days. A step is one or more of them. @param {number} length */
const stepFor = (length) => steps.find((s) => length / s <= 130) || 86_400;

export function RangeChooser() {
  const r = rangeOf();
  const choose = (/** @type {string} */ v) => setQuery({ range: v === '1h' ? '' : v, from: '', to: '' });
  return html`<${Segments} label=${common.range} value=${r.name} onChange=${choose} options=${Object.keys(ranges).map((n) => [n, n])} />
    ${!r.name && html`<button class="btn small" onClick=${() => setQuery({ from: '', to: '' })}>${words.zoomOut}</button>`}`;
}

/**
 * Returns the metrics of the page's range.
 * @param {{queue?: string, cls?: string}} [of]
 * @param {number} [every]
 */
export function useMetrics(of = {}, every = 10_000) {
  const r = rangeOf();
  const url = apiPath('job-metrics', of.cls === undefined ? [] : of.cls, { queue: of.queue, from: Math.floor(r.from), to: Math.ceil(r.to), step: r.step });
  return { ...useResource(url, { every }), range: r, url };
}

export const zoom = (/** @type {number} */ a, /** @type {number} */ b) => setQuery({ from: Math.floor(a), to: Math.ceil(b), range: '' });
export const deploys = (d) => (d?.deploys || []).map((m) => ({ at: m.at, label: m.label }));

/**
 * @param {{m: any, height?: number, tools?: any, class?: string, more?: any[]}} p `more`: lines
 *   over the bars
 */
export function Throughput({ m, height, tools, class: extra, more = [] }) {
  const s = m.data?.series || [];
  const pick = (/** @type {string} */ k) => s.map((p) => p[k] || 0);
  const other = s.map((p) => p.dead + p.discarded + p.expired);
  const bars = (/** @type {string} */ label, /** @type {string} */ colour, /** @type {number[]} */ values) => ({ label, colour, kind: 'bars', values });
  const series = [
    bars(words.succeeded, '#54be7e', pick('success')), bars(words.failed, '#d2a106', pick('failed')), bars(words.deadOrDiscarded, '#d12771', other), ...more,
  ];
  return html`<${Card} title=${words.throughput} class=${extra} tools=${html`<${PerStep} d=${m.data} />${tools}`}>
    <${Chart} of=${m} title=${words.jobsPer(stepText(m.data?.step_seconds))} height=${height} sync="page" stacked format=${brief}
      marks=${deploys(m.data)} onZoom=${zoom} from=${m.range.from} to=${m.range.to} x=${s.map((p) => p.at)} series=${series} /><//>`;
}

/** @param {number|undefined} s */
export const stepText = (s) => (!s ? words.step : s < 3600 ? words.steps(s / 60, 'min') : s < 86_400 ? words.steps(s / 3600, 'h') : words.steps(s / 86_400, 'd'));
/** The unit of a chart's bars. @param {{d: any}} p */
export const PerStep = ({ d }) => html`<span class="dim small nowrap">${words.unit(stepText(d?.step_seconds))}</span>`;

/**
 * @param {{m: any, of: 'run'|'wait', oldest?: number|null, height?: number, class?: string, title?:
 *   string, more?: any[]}} p `oldest`: age of the oldest waiting job, in seconds; `more`: lines
 *   behind these
 */
export function Percentiles({ m, of, oldest, height, class: extra, title, more = [] }) {
  const s = m.data?.series || [];
  const pick = (/** @type {string} */ k) => s.map((p) => p[of]?.[k] || null);
  // Dashes, because few samples put p99 on p95.
  const series = [
    ...more, { label: 'p50', colour: '#54be7e', values: pick('p50_ms') }, { label: 'p95', colour: '#4589ff', values: pick('p95_ms') },
    { label: 'p99', colour: '#d12771', kind: /** @type {'dash'} */ ('dash'), values: pick('p99_ms') },
  ];
  // When a queue stops, there are no new waits to show, but the age of its oldest job still grows.
  if (oldest) series.push(/** @type {any} */ ({ label: words.oldestJobNow, colour: '#d2a106', kind: 'dash', values: s.map(() => oldest * 1000) }));
  return html`<${Card} title=${title || (of === 'run' ? words.runTime : words.queueLatencyFirstAttempts)} class=${extra}>
    <${Chart} of=${m} title=${of === 'run' ? words.runTime : words.queueLatency} height=${height} sync="page" log format=${millis}
      marks=${deploys(m.data)} onZoom=${zoom} from=${m.range.from} to=${m.range.to} x=${s.map((p) => p.at)} series=${series} /><//>`;
}

/** Returns the part of jobs that did not succeed. @param {any} s */
export const failShare = (s) => { const n = s.success + s.failed + s.dead + s.discarded + s.expired; return n ? 1 - s.success / n : null; };
/** @param {any} s */
export const ran = (s) => s.success + s.failed + s.dead + s.discarded + s.expired;
