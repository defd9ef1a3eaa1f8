// @ts-check
// All queues, those that need a look first.
import { html, useMemo } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { brief, bytes, count, millis, percent, rate, seconds } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { failShare } from './charts.js';
import { paged, PagerOf } from './pager.js';
import { Spark } from './spark.js';
import { CopyCurl, Empty, Failure, State, Util } from './states.js';
import { ColumnChooser, sorted, Table } from './table.js';

/** What is wrong with a queue counts more than its name. @param {any} q */
const gravity = (q) => (q.paused ? 2 : { no_consumers: 0, down: 0, stopped: 0, flow: 1 }[q.state] ?? (q.held ? 1 : 3));

/** How long until it is empty. @param {any} q */
function drain(q) {
  if (!q.ready) return null;
  return q.growth_rate < 0 ? q.ready / -q.growth_rate : Infinity;
}

/** @param {{list: any, metrics: any}} p */
export function Queues({ list, metrics }) {
  const query = route.value.query;
  const text = (query.get('text') || '').toLowerCase();
  const sort = query.get('sort') || '';
  const reverse = query.get('sort_reverse') === 'true';
  const by = useMemo(() => new Map((metrics.data?.queues || []).map((/** @type {any} */ q) => [q.name, q])), [metrics.data]);
  const stat = (/** @type {any} */ q) => by.get(q.name);
  const all = list.data || [];
  const found = text ? all.filter((/** @type {any} */ q) => q.name.toLowerCase().includes(text)) : all;
  const near = new Set();
  const columns = columnsOf(stat, near);
  const rows = sort ? sorted(found, columns, sort, reverse) : [...found].sort((a, b) => gravity(a) - gravity(b) || (a.name < b.name ? -1 : 1));
  const part = paged(rows);
  part.rows.slice(0, lines).forEach((/** @type {any} */ q) => near.add(q.name));
  const sum = (/** @type {string} */ k) => found.reduce((/** @type {number} */ n, /** @type {any} */ q) => n + (q[k] || 0), 0);
  return html`<section class="card flush" id="queues" aria-label="Queues"><div class="toolbar"><h2 class="strong">Queues</h2><span class="badge">${count(all.length)}</span><span class="grow"></span>
      <input class="in small" type="search" data-filter placeholder="Filter by name" aria-label="Filter queues by name" value=${query.get('text') || ''} onInput=${(/** @type {any} */ e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} />
      <${ColumnChooser} id="queues" columns=${columns} /><${CopyCurl} url=${apiPath('job-queues')} /></div>
    <${Failure} error=${list.error} at=${list.data ? list.at : 0} refresh=${list.refresh} />
    ${!(list.error && !list.data) && html`<${Table} id="queues" caption="Queues" columns=${columns} rows=${part.rows} loading=${list.loading && !list.data} dim=${!!list.error} rowKey=${(/** @type {any} */ q) => q.name} sort=${sort} reverse=${reverse} of=${`${text} ${part.page} ${part.size}`}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '', page: '' })} open=${(/** @type {any} */ q) => navigate(link('job-queues', q.name))}
      foot=${found.length > 1 && html`<tr><td colspan="2">${text ? 'Those shown' : 'All'}</td><td class="r" colspan=${columns.length}><span class="dim">ready</span> ${count(sum('ready'))} · <span class="dim">unacked</span> ${count(sum('unacked'))} · <span class="dim">in</span> ${rate(sum('publish_rate'))} · <span class="dim">out</span> ${rate(sum('ack_rate'))}</td></tr>`}
      empty=${text ? html`<${Empty} icon="search" title=${`0 of ${all.length} match`}><button class="btn" onClick=${() => setQuery({ text: '' })}>Clear filter</button><//>` : html`<${Empty} icon="queue" title="No queues yet"><p>Publish a job, and its queue is made:</p><pre class="code">millrace enqueue SendEmail '["ann@example.com"]' --queue mails</pre><//>`} />`}
    <${PagerOf} of=${part} total=${rows.length} what="queues" />
  </section>`;
}

/** How many queues have a line of their own: each is a question to the sidecar. */
const lines = 24;

/** @param {(q: any) => any} stat @param {Set<string>} near */
function columnsOf(stat, near) {
  const run = (/** @type {any} */ q) => stat(q)?.run?.p95_ms ?? null;
  const wait = (/** @type {any} */ q) => stat(q)?.wait?.p95_ms ?? null;
  return [
    { id: 'name', label: 'Name', always: true, head: true, class: 'lim', sort: (/** @type {any} */ q) => q.name, cell: (/** @type {any} */ q) => html`<a class="cut" href=${link('job-queues', q.name)} title=${q.name}>${q.name}</a>` },
    { id: 'state', label: 'State', sort: gravity, cell: (/** @type {any} */ q) => html`<${QueueState} q=${q} />` },
    { id: 'ready', label: 'Ready', right: true, sort: (/** @type {any} */ q) => q.ready, cell: (/** @type {any} */ q) => brief(q.ready) },
    { id: 'unacked', label: 'Unacked', right: true, sort: (/** @type {any} */ q) => q.unacked, cell: (/** @type {any} */ q) => brief(q.unacked) },
    { id: 'oldest', label: 'Oldest', right: true, sort: (/** @type {any} */ q) => q.oldest?.seconds ?? null, cell: oldest },
    { id: 'in', label: 'In', right: true, sort: (/** @type {any} */ q) => q.publish_rate, cell: (/** @type {any} */ q) => rate(q.publish_rate) },
    { id: 'out', label: 'Out', right: true, sort: (/** @type {any} */ q) => q.ack_rate, cell: (/** @type {any} */ q) => rate(q.ack_rate) },
    { id: 'fail', label: 'Failed', right: true, sort: (/** @type {any} */ q) => (stat(q) ? failShare(stat(q)) : null), cell: (/** @type {any} */ q) => { const f = stat(q) ? failShare(stat(q)) : null; return html`<span class=${f > 0.1 ? 'bad strong' : ''}>${percent(f)}</span>`; } },
    { id: 'wait', label: 'Wait p95', right: true, sort: wait, cell: (/** @type {any} */ q) => millis(wait(q)) },
    { id: 'run', label: 'Run p95', right: true, sort: run, cell: (/** @type {any} */ q) => millis(run(q)) },
    { id: 'slots', label: 'In use', sort: (/** @type {any} */ q) => (q.slots ? q.busy / q.slots : null), cell: (/** @type {any} */ q) => (q.slots ? html`<${Util} part=${q.busy / q.slots} label=${'Slots of ' + q.name + ' in use'} text=${`${q.busy}/${q.slots}`} />` : html`<span class="dim">no workers</span>`) },
    { id: 'drain', label: 'Empty in', right: true, off: true, sort: drain, cell: (/** @type {any} */ q) => { const d = drain(q); return d === null ? '–' : d === Infinity ? (q.growth_rate > 0.05 ? html`<span class="warn">growing</span>` : '–') : seconds(d); } },
    { id: 'bytes', label: 'Size', right: true, off: true, sort: (/** @type {any} */ q) => q.bytes, cell: (/** @type {any} */ q) => bytes(q.bytes) },
    { id: 'trend', label: 'Last 30 min', cell: (/** @type {any} */ q) => (near.has(q.name) ? html`<${Trend} name=${q.name} />` : html`<span class="dim">–</span>`) },
  ];
}

/** @param {any} q */
const oldest = (q) => (q.oldest ? html`<span title=${q.oldest.accuracy === 'exact' ? '' : 'at least: the broker does not tell exactly'}>${q.oldest.accuracy === 'exact' ? '' : '≥ '}${seconds(q.oldest.seconds)}</span>` : html`<span class="dim">–</span>`);

/** @param {{q: any}} p */
export function QueueState({ q }) {
  if (q.paused || q.state === 'paused') return html`<${State} state="paused" />`;
  if (q.held) return html`<span title=${q.held.reason}><${State} state="held" /></span>`;
  return html`<${State} state=${q.state} text=${q.state === 'no_consumers' ? 'no workers' : undefined} />`;
}

/** One line a queue: what was done in it of late. @param {{name: string}} p */
function Trend({ name }) {
  minute.value;
  const end = Math.floor(serverNow() / 60) * 60;
  const m = useResource(apiPath('job-metrics', [], { queue: name, from: end - 1800, to: end, step: 60 }), { every: 0 });
  const v = (m.data?.series || []).map((/** @type {any} */ p) => p.success + p.failed + p.dead);
  return html`<${Spark} values=${v} label=${`Jobs a minute of ${name}, last 30 minutes: ${v.length ? `from ${Math.min(...v)} to ${Math.max(...v)}` : 'not known'}`} />`;
}
