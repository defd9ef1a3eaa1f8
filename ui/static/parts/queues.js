// @ts-check
// All queues, those that need attention first.
import { html, useMemo, useState } from '../core/h.js';
import { brief, bytes, count, millis, percent, rate, seconds } from '../core/format.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { failShare } from './charts.js';
import { Icon } from './icon.js';
import { Cut, paged, PagerOf } from './paging.js';
import { Spark } from './spark.js';
import { Answer, CopyCurl, Empty, State, Util } from './states.js';
import { ColumnChooser, sorted, Table } from './table.js';
import { Time } from './time.js';
import { failed } from './toast.js';
import { useTrends } from './trends.js';
import { common, queues as words } from '../core/words.js';

/** Orders queues by how much is wrong with them, and only then by name. @param {any} q */
const gravity = (q) => (q.paused ? 2 : { no_consumers: 0, saturated: 0, down: 0, stopped: 0, flow: 1 }[q.state] ?? (q.held ? 1 : 3));

/** Returns how long until the queue is empty. @param {any} q */
function drain(q) {
  if (!q.ready) return null;
  return q.growth_rate < 0 ? q.ready / -q.growth_rate : Infinity;
}

/**
 * @param {{list: any, metrics: any, attention: any, alone?: boolean}} p `alone`: the page has
 *   nothing else, and its title says so
 */
export function Queues({ list, metrics, attention, alone }) {
  const query = route.value.query;
  const text = (query.get('text') || '').toLowerCase();
  const sort = query.get('sort') || '';
  const reverse = query.get('sort_reverse') === 'true';
  const by = useMemo(() => new Map((metrics.data?.queues || []).map((q) => [q.name, q])), [metrics.data]);
  const stat = (q) => by.get(q.name);
  const all = list.data || [];
  const found = text ? all.filter((q) => q.name.toLowerCase().includes(text)) : all;
  // Only the sidecar knows how long jobs may wait. Its problems name the queues in which they have
  // waited longer.
  const late = useMemo(() => new Map((attention?.items || []).filter((i) => i.kind === 'oldest_too_old').map((i) => [i.subject, i.text])), [attention]);
  const columns = columnsOf(stat, late, useTrends());
  const rows = sort ? sorted(found, columns, sort, reverse) : [...found].sort((a, b) => gravity(a) - gravity(b) || (a.name < b.name ? -1 : 1));
  const part = paged(rows);
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  // Loaded when the first queue is selected.
  const [Bar, setBar] = useState(/** @type {any} */ (null));
  const choose = (/** @type {Map<string, any>} */ m) => {
    setChosen(m);
    if (!Bar) import('./pausing.js').then((p) => setBar(() => p.ChosenQueues), failed);
  };
  const empty = text
    ? html`<${Empty} icon="search" title=${common.noMatches(common.queuesOf(all.length))}>
      <button class="btn" onClick=${() => setQuery({ text: '' })}>${common.clearFilter}</button><//>`
    : html`<${Empty} icon="queue" title=${words.noQueuesYet}><p>${words.whenQueuesAppear}</p><pre class="code">${words.exampleEnqueue}</pre><//>`;
  return html`<section class="card flush" id="queues" aria-label=${common.queues}><div class="bars"><div class="toolbar">
      ${!alone && html`<h2 class="strong">${common.queues}</h2>${list.data && html`<span class="badge">${count(all.length + list.left)}</span>`}<span class="grow"></span>`}
      <input class=${'in small' + (alone ? ' grow' : '')} type="search" data-filter placeholder=${common.filterByName} aria-label=${words.filterQueuesByName}
        value=${query.get('text') || ''} onInput=${(e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} />${alone && html`<span class="grow"></span>`}
      <${ColumnChooser} id="queues" columns=${columns} /><${CopyCurl} url=${list.url} jq=${text && `select(.name | ascii_downcase | contains(${JSON.stringify(text)}))`} /></div>
      ${Bar && chosen.size > 0 && html`<${Bar} chosen=${chosen} all=${all} choose=${choose} refresh=${list.refresh} />`}</div>
    <${Cut} list=${list} what=${words.queues} />
    <${Answer} of=${list}><${Table} id="queues" caption=${common.queues} columns=${columns} rows=${part.rows} count=${rows.length}
      loading=${!list.data} dim=${!!list.error} rowKey=${(q) => q.name} label=${(q) => words.queue(q.name)}
      selection=${mayAct.value ? { chosen, set: choose } : undefined} sort=${sort} reverse=${reverse} of=${`${text} ${part.page} ${part.size}`}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '', page: '' })} open=${(q) => navigate(link('job-queues', q.name))}
      foot=${found.length > 1 && html`<${Sums} name=${text ? words.matching : words.total} of=${found} width=${columns.length} />`} empty=${empty} /><//>
    <${PagerOf} of=${part} total=${rows.length} what=${words.queues} />
  </section>`;
}

/** The sums of all queues that are listed. @param {{name: string, of: any[], width: number}} p */
function Sums({ name, of, width }) {
  const sum = (/** @type {string} */ k) => of.reduce((n, q) => n + (q[k] || 0), 0);
  const sums = [
    [words.ready, count(sum('ready'))], [words.unacked, count(sum('unacked'))], [words.in, rate(sum('publish_rate'))], [words.out, rate(sum('ack_rate'))],
  ];
  return html`<tr><td colspan="2">${name}</td>
    <td class="r" colspan=${width}>${sums.map(([what, n], i) => html`${i > 0 && ' · '}<span class="dim">${what}</span> ${n}`)}</td></tr>`;
}

/** The part of its slots that a queue uses. @param {any} q */
const used = (q) => (q.slots ? q.busy / q.slots : null);

/** When the queue is empty, at the present rate. @param {{q: any}} p */
function Drain({ q }) {
  const d = drain(q);
  if (d !== null && d !== Infinity) return seconds(d);
  return d === Infinity && q.growth_rate > 0.05 ? html`<span class="warn">${words.growing}</span>` : '–';
}

/**
 * @param {(q: any) => any} stat
 * @param {Map<string, string>} late the text for each queue whose oldest job waits too long
 * @param {(name: string) => number[]} trend
 */
function columnsOf(stat, late, trend) {
  const run = (q) => stat(q)?.run?.p95_ms ?? null;
  const wait = (q) => stat(q)?.wait?.p95_ms ?? null;
  const fails = (q) => (stat(q) ? failShare(stat(q)) : null);
  return [
    {
      id: 'name', label: common.name, always: true, head: true, class: 'some', sort: (q) => q.name,
      cell: (q) => html`<a class="cut" href=${link('job-queues', q.name)} title=${q.name}>${q.name}</a>`,
    },
    {
      id: 'state', label: common.state, sort: gravity,
      cell: (q) => html`<${QueueState} q=${q} />
        ${q.paused && html`<span class="cut dim small sub" title=${q.paused.reason}><${PausedBy} pause=${q.paused} /></span>`}`,
    },
    { id: 'ready', label: common.ready, right: true, sort: (q) => q.ready, cell: (q) => brief(q.ready) },
    {
      id: 'unacked', label: common.unacked, wide: true, right: true, sort: (q) => q.unacked,
      cell: (q) => html`${brief(q.unacked)}${q.leased > 0 && html` <span class="dim small">${words.leased(q.leased)}</span>`}`,
    },
    { id: 'oldest', label: common.oldestJob, right: true, sort: (q) => q.oldest?.seconds ?? null, cell: (q) => oldest(q, late.get(q.name)) },
    { id: 'in', label: common.in, right: true, sort: (q) => q.publish_rate, cell: (q) => rate(q.publish_rate) },
    { id: 'out', label: common.out, right: true, sort: (q) => q.ack_rate, cell: (q) => rate(q.ack_rate) },
    { id: 'fail', label: common.failed, right: true, sort: fails, cell: (q) => html`<span class=${fails(q) > 0.1 ? 'bad strong' : ''}>${percent(fails(q))}</span>` },
    { id: 'wait', label: common.waitP95, wide: true, right: true, sort: wait, cell: (q) => millis(wait(q)) },
    { id: 'run', label: words.runP95, wide: true, right: true, sort: run, cell: (q) => millis(run(q)) },
    {
      id: 'slots', label: words.inUse, wide: true, sort: used,
      cell: (q) => (q.slots ? html`<${Util} part=${used(q)} label=${common.slotsOf(q.name)} text=${`${q.busy}/${q.slots}`} />`
        : html`<span class="dim">${words.noWorkers}</span>`),
    },
    { id: 'drain', label: words.emptyIn, right: true, off: true, sort: drain, cell: (q) => html`<${Drain} q=${q} />` },
    { id: 'bytes', label: common.size, right: true, off: true, sort: (q) => q.bytes, cell: (q) => bytes(q.bytes) },
    { id: 'trend', label: words.last30Min, wide: true, cell: (q) => html`<${Trend} name=${q.name} values=${trend(q.name)} />` },
  ];
}

/**
 * How long the oldest job waits.
 * @param {any} q
 * @param {string} [late] the sidecar's text, if that is too long
 */
function oldest(q, late) {
  if (!q.oldest) return html`<span class="dim">–</span>`;
  const exact = q.oldest.accuracy === 'exact';
  const alarm = late && html`<${Icon} name="alert" small label=${words.tooOld} /> `;
  return html`<span class=${late ? 'bad strong' : undefined} title=${late || (exact ? '' : words.ageIsAtLeast)}>${alarm}${exact ? '' : '≥ '}${seconds(q.oldest.seconds)}</span>`;
}

/** @param {{q: any}} p */
export function QueueState({ q }) {
  if (q.paused || q.state === 'paused') return html`<${State} state="paused" />`;
  if (q.held) return html`<span title=${q.held.reason}><${State} state="held" /></span>`;
  return html`<${State} state=${q.state} text=${{ no_consumers: words.noWorkers, saturated: words.busyNoProgress }[q.state]} />`;
}

/** By whom, since when and why a queue is paused. @param {{pause: any}} p */
export const PausedBy = ({ pause }) => html`${words.pausedBy(pause.actor, html`<${Time} at=${pause.at} />`, pause.reason)}`;

/** @param {{name: string, values: number[]}} p */
const Trend = ({ name, values: v }) => html`<${Spark} values=${v} width=${72} label=${words.trend(name, v)} />`;
