// @ts-check
// Jobs in every state but one. Jobs that wait in a queue are the broker's, and the page of the
// queue shows them.
import { html, useMemo } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { brief, millis } from '../core/format.js';
import { overview } from '../core/overview.js';
import { useAll, useResource } from '../core/resource.js';
import { link, navigate, route, setFilter, setQuery } from '../core/router.js';
import { common } from '../core/words.js';
import { jobs as words } from '../core/pagewords.js';
import { Enqueue } from '../parts/enqueue.js';
import { column, Entries, failedAttempts, filterOf } from '../parts/entries.js';
import { FilterBox } from '../parts/filter.js';
import { Cut, paged, PagerOf } from '../parts/paging.js';
import { Answer, Banner, CopyCurl, Empty, State, Title } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { Since, Time } from '../parts/time.js';
import { timesUsual, Usual } from '../parts/usual.js';

/**
 * The URL selects the state. Without one, the first is shown.
 * @type {[string, string, (o: any) => number|undefined][]} state, name, and how many there are
 */
const states = [
  ['running', common.running, (o) => o.processes.busy], ['finished', common.recentRuns, () => undefined], ['scheduled-jobs', common.scheduled, (o) => o.sets['scheduled-jobs']?.total],
  ['retries', words.retrying, (o) => o.sets.retries?.total], ['dead-jobs', common.dead, (o) => o.sets['dead-jobs']?.total],
];

export default function Jobs() {
  const asked = route.value.query.get('state') || '';
  const state = states.some(([s]) => s === asked) ? asked : 'running';
  const o = overview.value;
  const options = states.map(([s, name, n]) => /** @type {[string, any]} */ ([s, html`${name}${o && n(o) !== undefined && html` <span class="badge">${brief(n(o))}</span>`}`]));
  const turn = (/** @type {string} */ s) => setQuery({ state: s === 'running' ? '' : s, page: '', next: '', sort: '', sort_reverse: '' });
  return html`<${Title} title=${common.jobs}><${Enqueue} /><a class="btn small" href=${link('job-queues')}>${words.showQueues}</a><//>
    <${Tabs} label=${common.state} value=${state} onChange=${turn} options=${options} />
    <div role="tabpanel">${state === 'running' ? html`<${Running} />` : state === 'finished' ? html`<${Finished} />` : html`<${Waiting} key=${state} set=${state} />`}</div>`;
}

/** @type {Record<string, {topic: string, columns: any[], empty: any}>} */
const sets = {
  'scheduled-jobs': {
    topic: 'scheduled', columns: [at(common.due), column.class, column.queue, column.args, column.jid],
    empty: html`<${Empty} icon="clock" title=${common.noScheduledJobs}><p>${common.whatIsScheduled}</p><//>`,
  },
  retries: {
    topic: 'retries', columns: [at(words.nextAttempt), column.class, column.queue, column.error, attempts(common.attempt), column.jid],
    empty: html`<${Empty} icon="retry" title=${common.noRetries}><p>${common.whatIsRetried}</p><//>`,
  },
  'dead-jobs': {
    topic: 'dead', columns: [at(common.died, true), column.class, column.queue, column.error, attempts(common.attempts), column.jid],
    empty: html`<${Empty} icon="check" title=${common.noDeadJobs}><p>${common.whatIsDead}</p><//>`,
  },
};

/** @param {string} label @param {boolean} [past] */
function at(label, past) {
  return { id: 'at', label, always: true, sort: 'at', cell: (r) => html`<${Time} at=${r.millrace.at} past=${past} />` };
}

/** @param {string} label */
function attempts(label) {
  return { id: 'tries', label, right: true, wide: true, sort: 'attempt', cell: failedAttempts };
}

/** @param {{set: string}} p */
const Waiting = ({ set }) => html`<${Entries} set=${set} topic=${sets[set].topic} columns=${sets[set].columns} empty=${sets[set].empty} />`;

/** Suggestions of names. @param {any[]} [processes] */
function useSuggestions(processes) {
  const queues = useResource(apiPath('job-queues', [], { limit: 500 }), { every: 0 });
  const metrics = useResource(apiPath('job-metrics'), { every: 0 });
  const workers = useResource(processes ? null : apiPath('processes', [], { limit: 500 }), { every: 0 });
  return {
    queue: () => (queues.data || []).map((q) => q.name),
    class: () => (metrics.data?.classes || []).filter((c) => !c.other).map((c) => c.name),
    error: () => [...new Set((metrics.data?.failures || []).map((f) => f.error))],
    worker: () => (processes || workers.data || []).map((p) => p.identity),
    status: () => outcomes,
  };
}

const outcomes = ['success', 'failed', 'dead', 'discarded', 'expired'];

const runningNames = ['queue', 'class', 'worker', 'jid'];
const workerOf = (r) => html`<a class="cut" title=${r.worker} href=${link('worker-processes', r.worker)}>${r.worker}</a>`;
const toJob = (r) => (r.jid ? html`<a class="mono dim" title=${r.jid} href=${link('jobs', r.jid)}>${r.jid.slice(0, 8)}</a>` : '–');
const classOf = (r) => (r.jid ? html`<a class="strong cut" title=${r.class} href=${link('jobs', r.jid)}>${r.class || '–'}</a>` : html`<span class="strong cut">${r.class || '–'}</span>`);
const queueOf = (r) => html`<a class="cut" href=${link('job-queues', r.queue || 'default')}>${r.queue}</a>`;

const runningColumns = [
  { id: 'class', label: common.class, always: true, head: true, class: 'lim', sort: (r) => r.class, cell: classOf },
  { id: 'for', label: common.runningFor, right: true, always: true, sort: (r) => -(r.started_at || Infinity), cell: (r) => html`<${Since} since=${r.started_at} />` },
  { id: 'usual', label: words.vsUsual, sort: timesUsual, cell: (r) => html`<${Usual} w=${r} />` },
  { id: 'queue', label: common.queue, class: 'lim', sort: (r) => r.queue, cell: queueOf },
  { id: 'worker', label: common.worker, class: 'lim', sort: (r) => r.worker, cell: workerOf },
  { id: 'started', label: common.started, wide: true, off: true, cell: (r) => html`<${Time} at=${r.started_at} />` },
  { id: 'jid', label: common.id, wide: true, cell: toJob },
];

/** The jobs that worker processes report as running. */
function Running() {
  const query = route.value.query;
  const list = useAll('processes', { topic: 'processes' });
  const all = useMemo(() => (list.data || []).flatMap((p) => p.work.map((w) => ({ ...w, worker: p.identity, lost: p.state === 'lost' }))), [list.data]);
  const unlisted = (list.data || []).reduce((/** @type {number} */ n, p) => n + (p.state === 'lost' ? 0 : Math.max(0, p.busy - p.work.length)), 0);
  const filter = filterOf(query, runningNames);
  const found = all.filter((r) => Object.entries(filter).every(([k, v]) => r[k] === v));
  const [sort, reverse] = [query.get('sort') || 'for', query.get('sort') ? query.get('sort_reverse') === 'true' : true];
  const part = paged(sorted(found, runningColumns, sort, reverse));
  const jq = Object.entries(filter).map(([k, v]) => (k === 'worker' ? '' : `select(.${k} == ${JSON.stringify(v)})`)).filter(Boolean).join(' | ');
  return html`<section class="card flush" aria-label=${common.runningJobs}><div class="bars"><div class="toolbar">
      <${FilterBox} label=${words.filterRunningJobs} names=${runningNames} query=${query} suggest=${useSuggestions(list.data || [])} onChange=${setFilter} />
      <${ColumnChooser} id="running" columns=${runningColumns} /><${CopyCurl} url=${list.url} jq=${'.work[]' + (jq && ' | ' + jq)} /></div></div>
    <${Cut} list=${list} what=${common.processesInline} />
    ${unlisted > 0 && html`<${Banner}>${words.unlisted(unlisted)}<//>`}
    <${Answer} of=${list}><${Table} id="running" caption=${common.runningJobs} columns=${runningColumns} rows=${part.rows} count=${found.length}
      loading=${!list.data} dim=${!!list.error} of=${`${JSON.stringify(filter)} ${part.page} ${part.size}`}
      rowKey=${(r) => `${r.worker} ${r.jid} ${r.started_at}`} sort=${sort} reverse=${reverse}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '', page: '' })}
      open=${(r) => r.jid && navigate(link('jobs', r.jid))}
      empty=${Object.keys(filter).length ? html`<${NoMatch} of=${all.length} names=${runningNames} />`
        : html`<${Empty} icon="worker" title=${words.noJobsAreRunning}><p>${words.whatIsRunning}</p><//>`} /><//>
    <${PagerOf} of=${part} total=${found.length} what=${words.runningJobs} /></section>`;
}

/** @param {{of?: number, names: string[]}} p */
function NoMatch({ of, names }) {
  const clear = () => setFilter(Object.fromEntries([...names, 'since'].map((n) => [n, ''])));
  return html`<${Empty} icon="search" title=${of === undefined ? common.noMatchingRuns : common.noMatches(common.jobsOf(of))}>
    <button class="btn" onClick=${clear}>${common.clearFilters}</button><//>`;
}

const finishedNames = ['status', 'class', 'queue', 'error', 'worker', 'jid'];
/** @type {[string, string][]} seconds, and their text */
const spans = [['', words.anyTime], ['900', words.last15Min], ['3600', words.lastHour], ['86400', words.last24H], ['259200', words.last3D]];

const finishedColumns = [
  { id: 'at', label: common.ended, always: true, cell: (r) => html`<${Time} at=${r.at} past />` },
  { id: 'class', label: common.class, always: true, head: true, class: 'lim', cell: classOf },
  { id: 'status', label: common.status, cell: (r) => html`<${State} state=${r.status} />` },
  { id: 'error', label: common.error, class: 'lim', cell: (r) => (r.error_class ? html`<span class="bad cut" title=${r.error_class}>${r.error_class}</span>` : '') },
  { id: 'took', label: common.took, right: true, cell: (r) => millis(r.duration_ms) },
  { id: 'waited', label: words.waited, right: true, wide: true, off: true, cell: (r) => millis(r.wait_ms) },
  { id: 'attempt', label: common.attempt, right: true, wide: true, cell: (r) => r.attempt || '–' },
  { id: 'queue', label: common.queue, class: 'lim', cell: queueOf },
  { id: 'worker', label: common.worker, class: 'lim', wide: true, cell: (r) => (r.worker ? workerOf(r) : '–') },
  { id: 'jid', label: common.id, wide: true, cell: toJob },
];

/** The attempts that workers reported, the latest report first. */
function Finished() {
  const query = route.value.query;
  const filter = filterOf(query, finishedNames);
  const [since, next] = [query.get('since') || '', query.get('next')];
  minute.value;
  // Rounded to the minute. If the request changed each second, no earlier answer could be used.
  const from = since && !Number.isNaN(Number(since)) ? Math.floor(serverNow() / 60) * 60 - Number(since) : undefined;
  const url = apiPath('jobs', [], { ...filter, from, limit: 50, next });
  const runs = useResource(url, { topic: 'jobs', every: 5000 });
  const d = runs.data;
  const rows = d?.items || [];
  const filtered = Object.keys(filter).length > 0 || !!since;
  return html`<section class="card flush" aria-label=${common.recentRuns}><div class="bars"><div class="toolbar">
      <select class="in small" aria-label=${words.endedWithin} value=${since} onChange=${(e) => setFilter({ since: e.target.value })}>
        ${spans.map(([v, text]) => html`<option value=${v} selected=${v === since}>${text}</option>`)}</select>
      <${FilterBox} label=${words.filterRecentRuns} names=${finishedNames} query=${query} suggest=${useSuggestions()} onChange=${setFilter} />
      <${ColumnChooser} id="finished" columns=${finishedColumns} /><${CopyCurl} url=${url} /></div></div>
    <${Answer} of=${runs}><${Table} id="finished" caption=${common.recentRuns} columns=${finishedColumns} rows=${rows} loading=${!d}
      dim=${!!runs.error} busy=${runs.stale} of=${runs.url} rowKey=${(r) => `${r.at} ${r.jid} ${r.worker} ${r.attempt}`}
      open=${(r) => r.jid && navigate(link('jobs', r.jid))}
      empty=${d?.next ? html`<${Empty} icon="search" title=${common.noMatchesSoFar}><p>${words.searched(d.searched)}</p>
          <button class="btn" onClick=${() => setQuery({ next: d.next })}>${common.keepSearching}</button><//>`
        : filtered ? html`<${NoMatch} names=${finishedNames} />` : html`<${Empty} icon="chart" title=${common.noRunsYet}><p>${words.whatIsReported(d?.max_age_seconds)}</p><//>`} /><//>
    ${d && html`<nav class="pager" aria-label=${common.pagesOfTheList}><span class="num">${words.shown(rows.length, d.older_than_kept && !d.next)}</span><div class="tools">
      ${next && html`<button class="btn small" onClick=${() => setQuery({ next: '' })}>${common.newest}</button>`}
      <button class="btn small" disabled=${!d.next || runs.stale} onClick=${() => setQuery({ next: d.next })}>${common.older}</button></div></nav>`}</section>`;
}
