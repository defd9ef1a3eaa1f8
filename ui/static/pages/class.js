// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { brief, count, millis, percent, short } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { failShare, Percentiles, ran, RangeChooser, stepText, Throughput, useMetrics } from '../parts/charts.js';
import { HeatMap } from '../parts/heat.js';
import { Answer, Banner, Card, CopyCurl, Counters, Empty, Failure, State, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { Failures } from './metrics.js';
import { common } from '../core/words.js';
import { metrics as words } from '../core/pagewords.js';

/** @param {{part: string}} p */
export default function Class({ part: name }) {
  const m = useMetrics({ cls: name });
  const { step } = m.range;
  // Rounded as the sidecar rounds them.
  const [from, to] = [Math.floor(m.range.from / step) * step, Math.ceil(m.range.to / step) * step];
  const before = useResource(apiPath('job-metrics', name, { from: from - (to - from), to: from, step }), { every: 0 });
  const compare = route.value.query.get('compare') === '1';
  const lines = compare ? linesOf(m.data, before.data, to - from) : { run: [], jobs: [] };
  const t = m.data?.total;
  return html`<${Title} crumbs=${[[common.metrics, link('job-metrics')]]} title=${name}>
      <a class="btn small" href=${link('retries', [], { class: name })}>${common.retries}</a>
      <a class="btn small" href=${link('dead-jobs', [], { class: name })}>${common.dead}</a>
      <label class="check small"><input type="checkbox" role="switch" checked=${compare}
        onChange=${(e) => setQuery({ compare: e.target.checked ? 1 : '' })} />${words.previousPeriod}</label><${RangeChooser} /><${CopyCurl} url=${m.url} /><//>
    <div class="grid"><${Answer} of=${m}>
      ${compare && html`<${Failure} error=${before.error} refresh=${before.refresh} />`}
      ${compare && before.data?.older_than_kept && html`<${Banner}>${words.previousNotKept(stepText(before.data.step_seconds))}<//>`}
      <${Counters} label=${words.inThisRange} of=${t ? countersOf(t, before.data?.total) : []} width=${6} />
      <${Percentiles} m=${m} of="run" height=${220} more=${lines.run} /><${Throughput} m=${m} class="c6" more=${lines.jobs} />
      <${HeatMap} m=${m} of="run" height=${200} class="c6" />
      <div class="c6"><${Failures} m=${m} cls=${name} /></div><${Queues} m=${m} /><//>
      <${Recent} name=${name} /></div>`;
}

/**
 * @param {any} t the sums of this range
 * @param {any} b those of the previous one
 * @returns {import('../parts/states.js').Counter[]}
 */
function countersOf(t, b) {
  /** @type {(label: string, of: string, name: string) => [string, any, any]} */
  const percentile = (label, of, name) => [label, millis(t[of]?.[name]), change(t[of]?.[name], b?.[of]?.[name])];
  return [
    [common.jobs, brief(ran(t)), change(ran(t), b && ran(b))],
    [common.failed, percent(failShare(t)), b && failShare(b) !== null ? words.before(percent(failShare(b))) : ''],
    percentile('p50', 'run', 'p50_ms'), percentile('p95', 'run', 'p95_ms'), percentile('p99', 'run', 'p99_ms'),
    percentile(common.waitP95, 'wait', 'p95_ms'),
  ];
}

const queueColumns = [
  {
    id: 'name', label: common.queue, always: true, head: true, class: 'lim',
    cell: (q) => html`<a class="cut" title=${q.name} href=${link('job-queues', q.name)}>${q.name}</a>`,
  },
  { id: 'n', label: common.jobs, right: true, cell: (q) => count(ran(q)) },
  { id: 'f', label: common.failed, right: true, cell: (q) => percent(failShare(q)) },
  { id: 'p', label: 'p95', right: true, cell: (q) => millis(q.run?.p95_ms) },
  { id: 'm', label: words.max, right: true, cell: (q) => millis(q.max_ms) },
];

/** The queues in which the class ran. @param {{m: any}} p */
const Queues = ({ m }) => html`<${Card} flush title=${common.queues} class="c6"><${Table} id="class-queues" caption=${common.queues} columns=${queueColumns}
  rows=${m.data?.queues || []} loading=${!m.data} rowKey=${(q) => q.name} still=${false} empty=${html`<${Empty} title=${words.noneOfThisClass} />`} /><//>`;

/**
 * Returns the lines of the previous range, drawn over a series. Returns none if the previous range
 * is not known or has another length.
 * @param {any} d
 * @param {any} b the answer about the previous range
 * @param {number} length of the range, in seconds
 */
function linesOf(d, b, length) {
  const shift = d && b ? d.to - b.to : NaN;
  // The two answers come at different moments, so one may be a step ahead.
  const fits = d?.step_seconds === b?.step_seconds && Math.abs(shift - length) <= b?.step_seconds;
  const then = new Map(fits ? b.series.map((s) => [s.at + shift, s]) : []);
  /** @type {(label: string, colour: string, of: (s: any) => number|null) => any} */
  const line = (label, colour, of) => ({
    label: words.before(label), colour, kind: 'dash', values: (d?.series || []).map((s) => (then.has(s.at) ? of(then.get(s.at)) : null)),
  });
  const percentile = (/** @type {string} */ k, /** @type {string} */ colour) => line(k, colour, (s) => s.run?.[k + '_ms'] || null);
  return { run: [percentile('p50', '#54be7ea0'), percentile('p95', '#4589ffa0'), percentile('p99', '#d12771a0')], jobs: [line(words.jobsLine, '#4589ff', ran)] };
}

const recent = [
  { id: 'at', label: common.ended, always: true, cell: (r) => html`<${Time} at=${r.at} past />` },
  {
    id: 'status', label: words.outcome, class: 'lim',
    cell: (r) => html`<span class="cut" title=${short(r.error_class)}><${State} state=${r.status} />
      ${r.error_class && html` <span class="bad small">${short(r.error_class)}</span>`}</span>`,
  },
  { id: 'attempt', label: common.attempt, right: true, wide: true, cell: (r) => r.attempt || '–' },
  { id: 'took', label: common.took, right: true, cell: (r) => millis(r.duration_ms) },
  {
    id: 'worker', label: common.worker, class: 'lim', wide: true,
    cell: (r) => (r.worker ? html`<a class="cut" title=${r.worker} href=${link('worker-processes', r.worker)}>${r.worker}</a>` : '–'),
  },
  { id: 'jid', label: common.job, class: 'lim', cell: (r) => (r.jid ? html`<a class="mono cut" title=${r.jid} href=${link('jobs', r.jid)}>${r.jid}</a>` : '–') },
];

/**
 * The newest runs, in any range, by the time when they ended. Workers may report them in another
 * order.
 * @param {{name: string}} p
 */
function Recent({ name }) {
  const url = apiPath('jobs', [], { class: name, limit: 20 });
  const runs = useResource(url, { every: 10_000 });
  const rows = [...runs.data?.items || []].sort((a, b) => b.at - a.at);
  return html`<${Card} flush title=${common.recentRuns} tools=${html`<${CopyCurl} url=${url} />`}><${Answer} of=${runs}>
    <${Table} id="recent-runs" caption=${common.recentRuns} columns=${recent} rows=${rows} loading=${!runs.data} rowKey=${(r) => `${r.at} ${r.jid} ${r.worker}`}
    open=${(r) => r.jid && navigate(link('jobs', r.jid))} empty=${html`<${Empty} icon="chart" title=${words.noRecentRuns} />`} /><//><//>`;
}

/**
 * Compares a number with that of the previous range, which has the same length.
 * @param {number|undefined} a
 * @param {number|undefined} b
 */
function change(a, b) {
  if (!a || !b) return '';
  const d = a / b - 1;
  return Math.abs(d) < 0.02 ? words.sameAsBefore : html`<span class=${d > 0.25 ? 'warn strong' : ''}>${words.vsBefore(d > 0 ? '+' : '−', percent(Math.abs(d)))}</span>`;
}
