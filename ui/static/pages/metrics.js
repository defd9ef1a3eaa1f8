// @ts-check
import { html } from '../core/h.js';
import { brief, count, millis, percent } from '../core/format.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { common } from '../core/words.js';
import { metrics as words } from '../core/pagewords.js';
import { failShare, Percentiles, ran, RangeChooser, stepText, Throughput, useMetrics } from '../parts/charts.js';
import { HeatMap } from '../parts/heat.js';
import { Share } from '../parts/share.js';
import { Answer, Banner, Card, CopyCurl, Empty, Segments, Title } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { flip, Tick, Ticked, tickedNow } from '../parts/ticked.js';

/** The tables of all classes and all queues: their titles, and the pages to which rows lead. */
const tables = {
  class: { id: 'classes', title: common.classes, name: common.class, page: 'job-metrics' },
  queue: { id: 'metric-queues', title: common.queues, name: common.queue, page: 'job-queues' },
};

/** @typedef {import('../parts/table.js').Column} Column */

/** @param {string} key @param {string} label @param {'run'|'wait'} of @returns {Column} */
const percentile = (key, label, of = 'run') => ({ id: of + key, label, right: true, sort: (s) => s[of]?.[key + '_ms'] ?? null, cell: (s) => millis(s[of]?.[key + '_ms']) });

/**
 * @param {import('../parts/ticked.js').Kind} kind
 * @param {string[]} ticked
 * @param {number} time of all together
 * @returns {Column[]}
 */
function columnsOf(kind, ticked, time) {
  const { name, page } = tables[kind];
  return [
    { id: 'show', label: common.chart, always: true, class: 'pick', cell: (s) => !s.other && html`<${Tick} kind=${kind} name=${s.name} ticked=${ticked} />` },
    {
      id: 'name', label: name, always: true, head: true, class: 'lim', sort: (s) => s.name,
      cell: (s) => (s.other ? html`<i>${common.allOther[kind]}</i>` : html`<a class="cut" title=${s.name} href=${link(page, s.name)}>${s.name}</a>`),
    },
    { id: 'count', label: common.jobs, right: true, sort: ran, cell: (s) => count(ran(s)) },
    { id: 'ok', label: words.succeeded, right: true, off: true, sort: (s) => s.success, cell: (s) => count(s.success) },
    { id: 'fail', label: common.failed, right: true, sort: failShare, cell: (s) => html`<span class=${failShare(s) > 0.1 ? 'bad strong' : ''}>${percent(failShare(s))}</span>` },
    { id: 'dead', label: common.dead, right: true, sort: (s) => s.dead, cell: (s) => count(s.dead) },
    percentile('p50', 'p50'), percentile('p95', 'p95'), percentile('p99', 'p99'),
    { id: 'max', label: words.max, right: true, sort: (s) => s.max_ms, cell: (s) => millis(s.max_ms) },
    percentile('p95', common.waitP95, 'wait'),
    { id: 'total', label: common.totalTime, right: true, sort: (s) => s.total_ms, cell: (s) => millis(s.total_ms) },
    { id: 'share', label: common.share, cell: (s) => html`<${Share} part=${time ? s.total_ms / time : null} />` },
  ];
}

export default function Metrics() {
  const query = route.value.query;
  const queue = query.get('queue');
  const kind = query.get('by') === 'queue' ? 'queue' : 'class';
  const m = useMetrics({ queue: queue || undefined });
  const ticked = tickedNow();
  return html`<${Title} title=${common.metrics} after=${queue && html`<${QueueChip} queue=${queue} />`}><${RangeChooser} /><${CopyCurl} url=${m.url} /><//>
    <div class="grid"><${Answer} of=${m}>
      ${m.data?.older_than_kept && html`<${Banner}>${words.notKept(stepText(m.data.step_seconds))}<//>`}
      ${ticked.some(Boolean) ? html`<${Ticked} kind=${kind} names=${ticked} range=${m.range} queue=${queue} />` : html`<${Throughput} m=${m} />`}
      <${Percentiles} m=${m} of="run" class="c6" /><${HeatMap} m=${m} of="run" height=${200} class="c6" />
      <${Sums} key=${kind} kind=${kind} m=${m} ticked=${ticked} />
      <${Failures} m=${m} /><//></div>`;
}

/** The queue to which the page is limited. @param {{queue: string}} p */
const QueueChip = ({ queue }) => html`<span class="chip"><b>${words.queue}</b>${queue}
  <button aria-label=${common.removeFilter('queue')} onClick=${() => setQuery({ queue: '' })}>×</button></span>`;

/**
 * All classes, or all queues.
 * @param {{kind: import('../parts/ticked.js').Kind, m: any, ticked: string[]}} p
 */
function Sums({ kind, m, ticked }) {
  const query = route.value.query;
  const sort = query.get('sort') || 'total';
  const reverse = query.get('sort_reverse') !== 'false';
  const text = (query.get('text') || '').toLowerCase();
  const { id, title, page } = tables[kind];
  const all = (kind === 'queue' ? m.data?.queues : m.data?.classes) || [];
  const time = all.reduce((/** @type {number} */ n, s) => n + s.total_ms, 0);
  const rows = all.filter((s) => !text || s.name.toLowerCase().includes(text));
  const columns = columnsOf(kind, ticked, time);
  const turn = (/** @type {string} */ to) => setQuery({ by: to === 'queue' ? to : '', show: '', text: '' });
  return html`<section class="card flush" aria-label=${title}>
    <div class="toolbar"><h2 class="strong">${title}</h2><span class="badge">${all.length}</span>
      <${Segments} label=${words.by} value=${kind} onChange=${turn} options=${[['class', common.class], ['queue', common.queue]]} /><span class="grow"></span>
      <input class="in small" type="search" data-filter placeholder=${common.filterByName} aria-label=${words.filterByName[kind]} value=${query.get('text') || ''}
        onInput=${(e) => setQuery({ text: e.target.value }, { replace: true })} /><${ColumnChooser} id=${id} columns=${columns} /></div>
    <${Table} id=${id} caption=${title} columns=${columns} rows=${sorted(rows, columns, sort, reverse)} loading=${!m.data} rowKey=${(s) => s.name}
      sort=${sort} reverse=${reverse} of=${text + m.range.name} onSort=${(/** @type {string} */ by, /** @type {boolean} */ r) => setQuery({ sort: by, sort_reverse: String(r) })}
      open=${(s) => !s.other && navigate(link(page, s.name))} keys=${(/** @type {string} */ k, s) => k === 'x' && !s.other && flip(s.name)}
      empty=${html`<${Empty} icon="chart" title=${text ? words.noMatching[kind] : common.noJobsRan}><p>${text ? '' : words.whenFiguresAppear}</p><//>`} /></section>`;
}

/** @param {{m: any, cls?: string}} p */
export function Failures({ m, cls }) {
  const all = m.data?.failures || [];
  const total = all.reduce((/** @type {number} */ n, f) => n + f.count, 0);
  /** @type {Column[]} */
  const columns = [
    {
      id: 'error', label: common.error, always: true, head: true, class: 'lim',
      cell: (f) => html`<a class="bad cut" title=${f.error} href=${link('retries', [], { error: f.error, class: f.class })}>${f.error || common.error}</a>`,
    },
    ...(cls ? [] : [{ id: 'class', label: common.class, class: 'lim', cell: (f) => html`<a class="cut" title=${f.class} href=${link('job-metrics', f.class)}>${f.class}</a>` }]),
    { id: 'count', label: common.attempts, right: true, cell: (f) => brief(f.count) },
    { id: 'share', label: common.share, cell: (f) => html`<${Share} part=${f.count / total} bad />` },
  ];
  return html`<${Card} flush title=${words.failures}><${Table} id="failures" caption=${words.failures} columns=${columns} rows=${all} loading=${!m.data}
    rowKey=${(f) => f.class + '\0' + f.error} still=${false}
    empty=${html`<${Empty} title=${m.data?.total?.failed ? words.errorsNotReported : words.noFailures} />`} /><//>`;
}
