// @ts-check
import { html, useEffect, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { brief, percent, rate } from '../core/format.js';
import { whenIdle } from '../core/idle.js';
import { overview } from '../core/overview.js';
import { useAll, useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { common, dashboard as words } from '../core/words.js';
import { Attention, useAttention } from '../parts/attention.js';
import { Percentiles, ran, RangeChooser, Throughput, useMetrics } from '../parts/charts.js';
import { DueTimes } from '../parts/due.js';
import { Queues } from '../parts/queues.js';
import { Answer, Counters, Title } from '../parts/states.js';

export default function Dashboard() {
  const m = useMetrics();
  const queues = useAll('job-queues', { topic: 'queues', every: 5000 });
  const attention = useAttention();
  const oldest = (queues.data || []).reduce((/** @type {number} */ n, q) => Math.max(n, q.oldest?.seconds || 0), 0);
  const table = html`<${Queues} list=${queues} metrics=${m} attention=${attention.data} />`;
  const fresh = queues.data?.length === 0 && nothingYet(overview.value);
  return html`<${Title} title=${common.dashboard}>${!fresh && html`<${RangeChooser} />`}<//>
    <div class="grid">
      <${Now} metrics=${m} queues=${queues.data} left=${queues.left} />
      ${fresh ? html`${table}<${Attention} of=${attention} />`
    : html`<${Attention} of=${attention} />
      <${Answer} of=${m}><${Throughput} m=${m} class="c6" height=${180} /><//>
      <${Answer} of=${m} quiet><${Percentiles} m=${m} of="wait" oldest=${oldest} class="c6" height=${180} /><//>
      <${DueTimes} set="scheduled-jobs" />
      ${table}
      <${Lower} />`}
    </div>`;
}

/** Returns whether there has been no job, so that charts would be empty. @param {any} o */
const nothingYet = (o) => !!o && !o.jobs.processed && !o.jobs.failed && Object.values(o.sets).every((s) => !s.total);

/** The part below the first screen, which is loaded after it. */
function Lower() {
  const [It, set] = useState(/** @type {any} */ (null));
  useEffect(() => whenIdle(() => { import('../parts/lower.js').then((l) => set(() => l.Lower), () => {}); }), []);
  return It && html`<${It} />`;
}

/**
 * Returns the metrics of the last hour. If that is the page's range, no further request is needed.
 * @param {any} metrics of the page
 */
function useLastHour(metrics) {
  const same = metrics.range.name === '1h';
  const own = useResource(same ? null : apiPath('job-metrics'), { every: 10_000 });
  const d = metrics.data;
  return same && d?.to - d?.from === 3600 ? d : own.data;
}

/**
 * @param {{metrics: any, queues: any[]|null, left: number}} p `left`: how many queues are missing
 *   from the list
 */
function Now({ metrics, queues, left }) {
  const o = overview.value;
  const recent = useLastHour(metrics);
  const s = recent?.series || [];
  const of = (/** @type {any[]} */ points, /** @type {(p: any) => number} */ f) => (points.length ? points.reduce((n, p) => n + f(p), 0) / (points.length * 60) : null);
  const failures = (p) => p.failed + p.dead;
  const [last, first] = [s.slice(-3, -1), s.slice(0, 2)];
  const sum = (/** @type {string} */ k) => queues?.reduce((n, q) => n + q[k], 0);
  // These are the acknowledgements of now, as in the table below; workers' own reports are some
  // minutes late. Failed attempts are acknowledged too.
  const out = queues?.some((q) => q.ack_rate !== null) ? sum('ack_rate') : of(last, ran);
  const p = o?.processes;
  const cells = [
    [words.processed, rate(out), delta(out, of(first, ran)), link('job-metrics')],
    [common.failed, rate(of(last, failures)), delta(of(last, failures), of(first, failures)), link('job-metrics')],
    [common.ready, brief(sum('ready')), queues ? words.inQueues(queues.length, left > 0) : '', link('job-queues')],
    [common.scheduled, brief(o?.sets['scheduled-jobs'].total), o?.scheduled_overdue_seconds > 1 ? common.late(o.scheduled_overdue_seconds) : words.onTime, link('scheduled-jobs')],
    [common.retries, brief(o?.sets.retries.total), '', link('retries')],
    [common.dead, brief(o?.sets['dead-jobs'].total), recent ? words.inOneHour(recent.total.dead) : '', link('dead-jobs')],
    [common.busy, p ? percent(p.concurrency ? p.busy / p.concurrency : 0) : '–', p ? words.slots(p.busy, p.concurrency) : '', link('worker-processes')],
    [common.workers, brief(p?.running), p?.states?.lost ? common.lost(p.states.lost) : '', link('worker-processes')],
  ];
  return html`<${Counters} label=${common.now} of=${cells} width=${8} />`;
}

/**
 * Compares a rate with that of an hour ago.
 * @param {number|null|undefined} now
 * @param {number|null} before
 */
function delta(now, before) {
  if (now === null || now === undefined || before === null) return '';
  if (!before) return now ? words.noneAnHourAgo : '';
  const d = now / before - 1;
  if (Math.abs(d) < 0.02) return words.sameAs1HAgo;
  return words.vsAnHourAgo(d > 0 ? '▲' : '▼', d > 2 ? brief(Math.round(now / before)) + '×' : percent(Math.abs(Math.round(d * 100) / 100)));
}
