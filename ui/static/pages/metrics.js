// @ts-check
import { html } from '../core/h.js';
import { brief, count, millis, percent } from '../core/format.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { common, metrics as words } from '../core/words.js';
import { failShare, Percentiles, ran, RangeChooser, stepText, Throughput, useMetrics } from '../parts/charts.js';
import { HeatMap } from '../parts/heat.js';
import { Answer, Card, CopyCurl, Empty, Title } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { flip, Tick, Ticked, tickedNow } from '../parts/ticked.js';

export default function Metrics() {
  const query = route.value.query;
  const m = useMetrics({ queue: query.get('queue') || undefined });
  const sort = query.get('sort') || 'total';
  const reverse = query.get('sort_reverse') !== 'false';
  const text = (query.get('text') || '').toLowerCase();
  const ticked = tickedNow();
  const all = m.data?.classes || [];
  const time = all.reduce((/** @type {number} */ n, /** @type {any} */ c) => n + c.total_ms, 0);
  const rows = all.filter((/** @type {any} */ c) => !text || c.name.toLowerCase().includes(text));
  const p = (/** @type {string} */ k, /** @type {string} */ label, of = 'run') => ({ id: of + k, label, right: true, off: of === 'wait' && k !== 'p95', sort: (/** @type {any} */ c) => c[of]?.[k + '_ms'] ?? null, cell: (/** @type {any} */ c) => millis(c[of]?.[k + '_ms']) });
  const columns = [
    { id: 'show', label: common.chart, always: true, class: 'pick', cell: (/** @type {any} */ c) => !c.other && html`<${Tick} name=${c.name} ticked=${ticked} />` },
    { id: 'name', label: common.class, always: true, head: true, class: 'lim', sort: (/** @type {any} */ c) => c.name, cell: (/** @type {any} */ c) => (c.other ? html`<i>${common.allOtherClasses}</i>` : html`<a class="cut" title=${c.name} href=${link('job-metrics', c.name)}>${c.name}</a>`) },
    { id: 'count', label: common.jobs, right: true, sort: ran, cell: (/** @type {any} */ c) => count(ran(c)) },
    { id: 'ok', label: words.succeeded, right: true, off: true, sort: (/** @type {any} */ c) => c.success, cell: (/** @type {any} */ c) => count(c.success) },
    { id: 'fail', label: common.failed, right: true, sort: failShare, cell: (/** @type {any} */ c) => html`<span class=${failShare(c) > 0.1 ? 'bad strong' : ''}>${percent(failShare(c))}</span>` },
    { id: 'dead', label: common.dead, right: true, sort: (/** @type {any} */ c) => c.dead, cell: (/** @type {any} */ c) => count(c.dead) },
    p('p50', 'p50'), p('p95', 'p95'), p('p99', 'p99'), { id: 'max', label: words.max, right: true, sort: (/** @type {any} */ c) => c.max_ms, cell: (/** @type {any} */ c) => millis(c.max_ms) }, p('p95', common.waitP95, 'wait'),
    { id: 'total', label: common.totalTime, right: true, sort: (/** @type {any} */ c) => c.total_ms, cell: (/** @type {any} */ c) => millis(c.total_ms) },
    { id: 'share', label: common.share, cell: (/** @type {any} */ c) => html`<div class="util"><div class="bar" aria-hidden="true"><i style=${{ width: (time ? (c.total_ms / time) * 100 : 0) + '%' }}></i></div><span class="num nowrap">${percent(time ? c.total_ms / time : null)}</span></div>` },
  ];
  return html`<${Title} title=${common.metrics} after=${query.get('queue') && html`<span class="chip"><b>${words.queue}</b>${query.get('queue')}<button aria-label=${common.removeFilter('queue')} onClick=${() => setQuery({ queue: '' })}>×</button></span>`}><${RangeChooser} /><${CopyCurl} url=${m.url} /><//>
    <div class="grid"><${Answer} of=${m}>
      ${m.data?.older_than_kept && html`<p class="banner">${words.notKept(stepText(m.data.step_seconds))}</p>`}
      ${ticked.some(Boolean) ? html`<${Ticked} names=${ticked} range=${m.range} queue=${query.get('queue')} />` : html`<${Throughput} m=${m} />`}<${Percentiles} m=${m} of="run" class="c6" /><${HeatMap} m=${m} of="run" height=${200} class="c6" />
      <section class="card flush" aria-label=${common.classes}><div class="toolbar"><h2 class="strong">${common.classes}</h2><span class="badge">${all.length}</span><span class="grow"></span>
        <input class="in small" type="search" data-filter placeholder=${common.filterByName} aria-label=${words.filterClassesByName} value=${query.get('text') || ''} onInput=${(/** @type {any} */ e) => setQuery({ text: e.target.value }, { replace: true })} /><${ColumnChooser} id="classes" columns=${columns} /></div>
        <${Table} id="classes" caption=${common.classes} columns=${columns} rows=${sorted(rows, columns, sort, reverse)} loading=${!m.data} rowKey=${(/** @type {any} */ c) => c.name} sort=${sort} reverse=${reverse} of=${text + m.range.name} onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: String(r) })}
          open=${(/** @type {any} */ c) => !c.other && navigate(link('job-metrics', c.name))} keys=${(/** @type {string} */ k, /** @type {any} */ c) => k === 'x' && !c.other && flip(c.name)} empty=${html`<${Empty} icon="chart" title=${text ? words.noMatchingClasses : common.noJobsRan}><p>${text ? '' : words.whenFiguresAppear}</p><//>`} /></section>
      <${Failures} m=${m} /><//></div>`;
}

/** @param {{m: any, cls?: string}} p */
export function Failures({ m, cls }) {
  const all = m.data?.failures || [];
  const total = all.reduce((/** @type {number} */ n, /** @type {any} */ f) => n + f.count, 0);
  const columns = [{ id: 'error', label: common.error, always: true, head: true, class: 'lim', cell: (/** @type {any} */ f) => html`<a class="bad cut" title=${f.error} href=${link('retries', [], { error: f.error, class: f.class })}>${f.error || common.error}</a>` }, ...(cls ? [] : [{ id: 'class', label: common.class, class: 'lim', cell: (/** @type {any} */ f) => html`<a class="cut" title=${f.class} href=${link('job-metrics', f.class)}>${f.class}</a>` }]),
    { id: 'count', label: common.attempts, right: true, cell: (/** @type {any} */ f) => brief(f.count) }, { id: 'share', label: common.share, cell: (/** @type {any} */ f) => html`<div class="util"><div class="bar bad" aria-hidden="true"><i style=${{ width: (f.count / total) * 100 + '%' }}></i></div><span class="num nowrap">${percent(f.count / total)}</span></div>` }];
  return html`<${Card} flush title=${words.failures}><${Table} id="failures" caption=${words.failures} columns=${columns} rows=${all} loading=${!m.data} rowKey=${(/** @type {any} */ f) => f.class + '\0' + f.error} still=${false} empty=${html`<${Empty} title=${m.data?.total?.failed ? words.errorsNotReported : words.noFailures} />`} /><//>`;
}
