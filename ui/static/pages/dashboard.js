// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { brief, count, percent, plural, rate, seconds } from '../core/format.js';
import { overview } from '../core/overview.js';
import { useAll, useResource } from '../core/resource.js';
import { link, route } from '../core/router.js';
import { Attention, useAttention } from '../parts/attention.js';
import { Percentiles, RangeChooser, stepText, Throughput, useMetrics } from '../parts/charts.js';
import { DueTimes } from '../parts/due.js';
import { opText, ownState, Progress } from '../parts/ops.js';
import { Queues } from '../parts/queues.js';
import { Answer, Card, Failure, State, Title } from '../parts/states.js';
import { Time } from '../parts/time.js';

export default function Dashboard() {
  const m = useMetrics();
  const queues = useAll('job-queues', { topic: 'queues', every: 5000 });
  const attention = useAttention();
  const oldest = (queues.data || []).reduce((/** @type {number} */ n, /** @type {any} */ q) => Math.max(n, q.oldest?.seconds || 0), 0);
  return html`<${Title} title="Dashboard"><${RangeChooser} /><//>
    <div class="grid">
      <${Counters} metrics=${m} queues=${queues.data} left=${queues.left} />
      <${Answer} of=${m}><${Throughput} m=${m} class="c8" height=${230} tools=${html`<span class="dim small">in steps of ${stepText(m.data?.step_seconds)}</span>`} /><//>
      <${Attention} of=${attention} class="c4" />
      <${Answer} of=${m} quiet><${Percentiles} m=${m} of="wait" oldest=${oldest} class="c6" height=${180} /><//>
      <div class="c6"><${DueTimes} set="scheduled-jobs" height=${180} /></div>
      <${Queues} list=${queues} metrics=${m} attention=${attention.data} />
      <${TopErrors} class="c6" /><${Recent} class="c6" />
    </div>`;
}

/** To the table below, with the range and the filter as they are. @param {Event} e */
function toQueues(e) {
  e.preventDefault();
  const at = document.getElementById('queues');
  at.scrollIntoView();
  at.focus({ preventScroll: true });
}

/** The last hour: where that is the page's range, it has been asked for. @param {any} metrics of the page */
function useLastHour(metrics) {
  const same = metrics.range.name === '1h';
  const own = useResource(same ? null : apiPath('job-metrics'), { every: 10_000 });
  const d = metrics.data;
  return same && d?.to - d?.from === 3600 ? d : own.data;
}

/** @param {{metrics: any, queues: any[]|null, left: number}} p left: how many queues are not among them */
function Counters({ metrics, queues, left }) {
  const o = overview.value;
  const recent = useLastHour(metrics);
  const s = recent?.series || [];
  const of = (/** @type {any[]} */ points, /** @type {(p: any) => number} */ f) => (points.length ? points.reduce((n, p) => n + f(p), 0) / (points.length * 60) : null);
  const failures = (/** @type {any} */ p) => p.failed + p.dead;
  const [last, first] = [s.slice(-3, -1), s.slice(0, 2)];
  const ready = queues?.reduce((n, q) => n + q.ready, 0);
  const p = o?.processes;
  const cells = [
    ['Processed', rate(of(last, (x) => x.success)), delta(of(last, (x) => x.success), of(first, (x) => x.success)), link('job-metrics')],
    ['Failed', rate(of(last, failures)), delta(of(last, failures), of(first, failures)), link('job-metrics')],
    ['Ready', brief(ready), queues ? `in ${left ? 'the first ' : ''}${plural(queues.length, 'queue')}` : '', link('job-queues', [], route.value.query) + '#queues', toQueues],
    ['Scheduled', brief(o?.sets['scheduled-jobs'].total), o?.scheduled_overdue_seconds > 1 ? seconds(o.scheduled_overdue_seconds) + ' late' : 'on time', link('scheduled-jobs')],
    ['Retries', brief(o?.sets.retries.total), '', link('retries')],
    ['Dead', brief(o?.sets['dead-jobs'].total), recent ? `${recent.total.dead ? '+' + count(recent.total.dead) : 'none'} in 1 h` : '', link('dead-jobs')],
    ['Busy', p ? percent(p.concurrency ? p.busy / p.concurrency : 0) : '–', p ? `${count(p.busy)} of ${count(p.concurrency)} slots` : '', link('worker-processes')],
    ['Workers', brief(p?.running), p?.states?.lost ? plural(p.states.lost, 'lost', 'lost') : '', link('worker-processes')],
  ];
  return html`<section class="card flush" aria-label="Now"><dl class="counters n8" style=${{ margin: 0 }}>${cells.map(([name, value, note, to, go]) => html`<div key=${name}><dt>${name}</dt><dd><a href=${to} onClick=${go}>${value}</a></dd><dd class="note">${note || '\u00a0'}</dd></div>`)}</dl></section>`;
}

/** @param {number|null} now @param {number|null} before */
function delta(now, before) {
  if (now === null || before === null) return '';
  if (!before) return now ? 'none an hour ago' : 'as an hour ago';
  if (!now) return 'none now';
  const d = now / before - 1;
  if (d > 2) return `${brief(Math.round(now / before))}× an hour ago`;
  return Math.abs(d) < 0.02 ? 'as an hour ago' : `${d > 0 ? '+' : '−'}${percent(Math.abs(d))} in 1 h`;
}

/** @param {{class: string}} p */
function TopErrors({ class: extra }) {
  const errors = useResource(apiPath('errors'), { every: 15_000 });
  const top = (errors.data?.items || []).slice(0, 8);
  return html`<${Card} title="What fails most" class=${extra} tools=${html`<a class="btn small" href=${link('retries', [], { view: 'storm' })}>All</a>`}>
    <${Failure} error=${errors.error} refresh=${errors.refresh} />
    ${top.length ? html`<ul class="att">${top.map((/** @type {any} */ g) => html`<li key=${g.fingerprint}><span class="num strong" style=${{ minWidth: '3rem' }}>${brief(g.count)}</span><div class="grow"><a class="bad" href=${link(g.retries ? 'retries' : 'dead-jobs', [], { error: g.fingerprint })}>${g.error_class || 'Error'}</a> <span class="dim">in ${g.class}</span>
      <div class="cut dim small" title=${g.message}>${g.message}</div></div><span class="small dim nowrap">${g.dead ? plural(g.dead, 'dead', 'dead') : ''}</span></li>`)}</ul>` : errors.data && html`<p class="dim">Nothing fails.</p>`}<//>`;
}

/** @param {{class: string}} p */
function Recent({ class: extra }) {
  const ops = useResource(apiPath('operations'), { topic: 'operations', every: 10_000 });
  const top = (ops.data || []).slice(0, 6);
  return html`<${Card} title="Operations" class=${extra} tools=${html`<a class="btn small" href=${link('operations')}>All</a>`}>
    <${Failure} error=${ops.error} refresh=${ops.refresh} />
    ${top.length ? html`<ul class="att">${top.map((/** @type {any} */ op) => html`<li key=${op.id}><div class="grow"><span class="strong">${opText(op)}</span> <span class="dim small">${op.actor ? 'by ' + op.actor : ''}</span>${op.state === 'running' && html`<${Progress} op=${op} />`}</div><${State} state=${ownState(op)} /><span class="small dim"><${Time} at=${op.started_at} /></span></li>`)}</ul>` : ops.data && html`<p class="dim">Nobody has done anything to many jobs at once.</p>`}<//>`;
}
