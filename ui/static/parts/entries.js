// @ts-check
// A list of entries: scheduled jobs, retries or dead jobs. The three pages differ in their columns,
// and in the part above the list.
import { cx, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { short } from '../core/format.js';
import { nameOfJob } from '../core/message.js';
import { whyNotMany } from '../core/overview.js';
import { itemTexts, memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate, plain, route, setFilter, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { mostAttempts } from '../core/story.js';
import { fixed } from '../core/times.js';
import { actions, actionsOf, actOn, actOnMany, bulkOf, jidOf } from './actions.js';
import { Downloads } from './downloads.js';
import { FilterBox } from './filter.js';
import { Icon } from './icon.js';
import { setNames, single } from './ops.js';
import { Pager } from './pager.js';
import { Answer, CopyCurl, Empty } from './states.js';
import { ColumnChooser, Table } from './table.js';
import { say, toast } from './toast.js';
import { common, entries as words } from '../core/words.js';

export const filterNames = ['queue', 'class', 'error', 'tag', 'jid', 'text', 'args', 'from', 'to'];

/**
 * Returns the filter of a URL.
 * @param {URLSearchParams} query
 * @param {string[]} [names]
 * @returns {Record<string, string>}
 */
export const filterOf = (query, names = filterNames) => Object.fromEntries(names.filter((n) => query.get(n)).map((n) => [n, query.get(n)]));

/** How many jobs the API sorts at most. */
const mostSorted = 100_000;
/** Returns the default order of a list. @param {string} set */
const natural = (set) => (set === 'dead-jobs' ? '-at' : 'at');
/** Returns the API's name of the column by which a list is sorted. @param {string} sort */
const keyOf = (sort) => sort.replace(/^-/, '');

export const byAttempt = (r) => r.millrace.attempt ?? 0;

/** Reasons of dead jobs for which the last attempt counts as failed. */
const failedNow = ['exhausted', 'killed', 'poison'];
/** Error classes of dead jobs that Millrace writes without a failed attempt. */
const notRun = ['rejected', 'expired', 'maxlen', 'delivery_limit', 'killed'];

/**
 * Returns how many attempts failed. The record of a retry counts the last attempt. The record of a
 * dead job from a worker does not, and from some clients it has no reason. A retry that a user
 * killed has no reason either, but its record counts one more attempt than the job within it.
 * @param {any} r
 */
export function failedAttempts(r) {
  const n = byAttempt(r);
  if (r.type !== 'dead_job') return n;
  const more = r.reason ? failedNow.includes(r.reason) : r.error_class && !notRun.includes(r.error_class) && n === (r.job?.retry_count ?? 0);
  return more ? n + 1 : n;
}

/**
 * Returns how many seconds a worker waits at least after the next failure, if its handler has no
 * backoff of its own. Returns null if the next attempt is the last.
 * @param {any} r
 */
export const nextBackoff = (r) => (byAttempt(r) + 1 < mostAttempts(r.job) ? byAttempt(r) ** 4 + 15 : null);

/** What a row is called. @param {any} r */
const nameOf = (r) => nameOfJob(r.job, r.millrace.class);

/** @type {Record<string, any>} Columns of more than one set. */
export const column = {
  class: {
    id: 'class', label: common.class, always: true, class: 'lim', sort: 'class',
    cell: (r) => html`<a class="strong cut" href=${link('jobs', jidOf(r))} title=${nameOf(r)}>${nameOf(r) || '–'}</a>`,
  },
  queue: {
    id: 'queue', label: common.queue, class: 'lim', sort: 'queue',
    cell: (r) => html`<a class="cut" href=${link('job-queues', r.millrace.queue || 'default')}>${r.millrace.queue}</a>`,
  },
  args: {
    id: 'args', label: common.arguments, class: 'fill',
    cell: (r) => html`<code class="cut" title=${short(argsOf(r))}>${r.millrace.omitted ? words.notRead(r.millrace.omitted) : short(argsOf(r))}</code>`,
  },
  jid: {
    id: 'jid', label: common.id, wide: true,
    cell: (r) => html`<a class="mono dim" href=${link('jobs', jidOf(r))} title=${jidOf(r)}>${jidOf(r).slice(0, 8)}</a>`,
  },
  error: {
    id: 'error', label: common.error, class: 'fill', sort: 'error',
    cell: (r) => html`<span class="cut" title=${short(`${r.error_class || ''}: ${r.error_message || ''}`)}>
      <${ErrorLink} of=${r.error_class || ''} /> <span class="dim">${short(r.error_message)}</span></span>`,
  },
};

/**
 * A link to all entries with an error: in another tab, or here together with the present filter.
 * @param {{of: string}} p
 */
function ErrorLink({ of }) {
  const narrow = (/** @type {MouseEvent} */ e) => {
    if (!plain(e)) return;
    e.preventDefault();
    setFilter({ error: of });
  };
  if (!of) return html`<span class="bad strong">${common.error}</span>`;
  const { parts, query } = route.peek();
  return html`<a class="bad strong" href=${link(parts[0], [], { state: query.get('state'), error: of })} onClick=${narrow}>${of}</a>`;
}

/** @param {any} r */
const argsOf = (r) => (r.args === undefined ? (r.args = memberText(r.raw, ...(r.job ? ['job', 'args'] : ['args']))) : r.args);

/**
 * The cursors of the pages of a list whose end is not known. Such a list is read from cursor to
 * cursor. Its pages may have few rows or none, so a number cannot show where a page begins.
 * @param {string} of the list and its filter
 */
function useTrail(of) {
  const trail = useRef({ of, starts: /** @type {Map<number, string>} */ (new Map()) });
  if (trail.current.of !== of) trail.current = { of, starts: new Map() };
  return trail.current.starts;
}

/**
 * @param {{set: string, topic: string, columns: any[], empty: any, above?: (list: any) => any,
 *   controls?: any, always?: Record<string, string>}} p
 */
export function Entries({ set, topic, columns, empty, controls, always = {} }) {
  const query = route.value.query;
  const names = filterNames.filter((n) => !(n in always));
  const filter = { ...filterOf(query, names), ...always };
  const page = Number(query.get('page')) || 1;
  const size = Number(query.get('page_size')) || 50;
  const wanted = query.get('sort') || '';
  const sort = columns.some((c) => c.sort === keyOf(wanted)) ? wanted : natural(set);
  const sorted = sort !== natural(set);
  const next = (!sorted && query.get('next')) || '';
  const url = apiPath(set, [], { ...filter, page, page_size: size, sort: sorted ? sort : undefined, next: next || undefined });
  const list = useResource(url, { topic, every: 5000 });
  // An unchanged record must be the same row object.
  const before = useRef(/** @type {Map<string, any>} */ (new Map()));
  const read = useMemo(() => {
    const all = list.data?.items ? itemTexts(list.text, 'items').map((raw, i) => before.current.get(raw) || { ...list.data.items[i], raw, args: undefined }) : [];
    before.current = new Map(all.map((r) => [r.raw, r]));
    return all;
  }, [list.text]);
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [matching, setMatching] = useState(/** @type {any} */ (null));
  const filterText = JSON.stringify(filter);
  // Immediately, not after the next frame: a row that is selected until then must stay selected.
  useLayoutEffect(() => { setChosen(new Map()); setMatching(null); }, [filterText, set]);
  const filtered = Object.keys(filter).length > 0;
  const done = () => list.refresh();
  const d = list.data;
  // After a cursor, the rows before it are not counted.
  const all = filtered && !next && (d?.searched >= d?.total_count || (!d?.next && page === 1));
  const known = d && (d.filtered_count ?? (all ? d.filtered_count_at_least : undefined));
  const unsortable = d?.total_count > mostSorted && !filter.from && !filter.to && !filter.jid ? words.tooLongToSort(mostSorted) : '';
  const order = (/** @type {string} */ id, /** @type {boolean} */ reverse) => {
    const to = (reverse ? '-' : '') + columns.find((c) => c.id === id).sort;
    if (to === natural(set)) setFilter({ sort: '' });
    else if (unsortable) toast(unsortable);
    else setFilter({ sort: to });
  };
  useEffect(() => {
    if (!sorted || list.error?.status !== 400) return;
    toast(list.error.reason, { bad: true }); // the list became too long
    setQuery({ sort: '' }, { replace: true });
  }, [sorted, list.error]);
  const starts = useTrail(`${set} ${filterText} ${size} ${sort}`);
  starts.set(page, next);
  const turn = (/** @type {number} */ to) => {
    let start = '';
    if (to > page && known === undefined) start = d.next;
    else if (starts.has(to)) start = starts.get(to);
    else if (next) to = 1; // the earlier pages are not known, because a link led here
    setQuery({ page: to === 1 ? '' : to, next: start });
  };
  const choose = (/** @type {Map<string, any>} */ m) => {
    setMatching(null);
    setChosen(m);
    if (m.size) say(common.selected(common.jobsOf(m.size)));
  };
  const run = async (/** @type {string} */ action) => {
    const target = matching
      ? { set, filter: fixed(filter, matching.read), group: d?.error_group, count: matching.count, asOf: matching.asOf, expected: matching.exact ? matching.count : undefined }
      : { set, rows: [...chosen.values()], count: chosen.size };
    if (!matching && chosen.size === 1 && action !== 'change') {
      await actOn(set, action, [...chosen.values()][0], done);
      choose(new Map());
    } else if (await actOnMany(action, target, done)) choose(new Map());
  };
  const suggest = useSuggestions(set);
  const key = (/** @type {string} */ k, row) => {
    const a = actionsOf[set].find((x) => actions[x].key === k);
    if (a) actOn(set, a, row, done);
    return !!a;
  };
  const select = () => setMatching({ count: known ?? d.filtered_count_at_least ?? d.total_count, exact: known !== undefined, asOf: d.as_of, read: list.at });
  const what = filtered ? words.matchingOf(d?.total_count) : known === 1 ? single[set] : setNames[set];
  const how = words.inOrder(set, keyOf(sort) === 'at' ? '' : columns.find((c) => c.sort === keyOf(sort)).label, sorted);
  return html`<section class="card flush" aria-label=${setNames[set]}>
    <div class="bars"><div class="toolbar">${controls}
      <${FilterBox} label=${words.filterOf(setNames[set])} names=${names} when=${set === 'dead-jobs' ? 'died' : set === 'gated-jobs' ? '' : 'due'} query=${query}
        group=${d?.error_group} suggest=${suggest} onChange=${setFilter} />
      <${ColumnChooser} id=${set} columns=${columns} /><${CopyCurl} url=${url} /><${Downloads} set=${set} filter=${filter} /></div>
    ${chosen.size > 0 && html`<div class="selbar" role="region" aria-label=${common.selection}>
      <span class="strong">${matching ? words.allSelected(matching.count) : common.selected(common.jobsOf(chosen.size))}</span>
      ${!matching && d && !list.stale && (known ?? d.total_count) > chosen.size && html`<button class="linkish" onClick=${select}>${words.selectAll(known, d.filtered_count_at_least)}</button>`}
      <button class="linkish" onClick=${() => choose(new Map())}>${common.clear}</button>
      <div class="tools">${bulkOf[set].map((/** @type {string} */ a) => html`<button class=${'btn small' + (actions[a].hurt ? ' hurt' : '')} disabled=${!!whyNotMany.value}
        title=${whyNotMany.value} onClick=${() => run(a)}><${Icon} name=${actions[a].icon} small />${a === 'change' ? common.reschedule : actions[a].label}</button>`)}</div></div>`}</div>
    <${Answer} of=${list}><${Table} id=${set} caption=${setNames[set]} columns=${columns} rows=${read} loading=${list.loading || !d} dim=${!!list.error}
      busy=${list.stale} of=${list.url} count=${known ?? d?.filtered_count_at_least ?? d?.total_count} steady
      sort=${columns.find((c) => c.sort === keyOf(sort))?.id} reverse=${sort.startsWith('-')} onSort=${order} unsortable=${unsortable || undefined}
      rowKey=${(r) => String(r.millrace.offset)} label=${(r) => words.job(jidOf(r))}
      selection=${mayAct.value ? { chosen, set: choose } : undefined} open=${(r) => navigate(link('jobs', jidOf(r)))} keys=${key}
      acts=${mayAct.value ? (r) => html`<${Acts} set=${set} row=${r} done=${done} />` : undefined}
      empty=${filtered || page > 1 ? html`<${Nothing} d=${d} page=${page} next=${next} clear=${[...names, 'page', 'next']} />` : empty} /><//>
    ${d && html`<${Pager} page=${page} size=${size} items=${read.length} total=${known} atLeast=${d.filtered_count_at_least} pages=${d.page_count}
      more=${!!d.next && !list.stale} unplaced=${!!next} what=${what + (read.length > 1 ? `, ${how}` : '')}
      onPage=${turn} onSize=${(/** @type {number} */ n) => setFilter({ page_size: n })} />`}
  </section>`;
}

/**
 * The text of a list without rows, if there are entries elsewhere.
 * @param {{d: any, page: number, next: string, clear: string[]}} p `clear`: the filters of the
 *   query
 */
function Nothing({ d, page, next, clear }) {
  const title = d?.next ? (page > 1 ? words.noMoreSoFar : common.noMatchesSoFar) : next ? words.noMoreMatches
    : page > 1 ? words.nothingLeftOnThisPage : common.noMatches(common.jobsOf(d?.total_count));
  const cleared = () => setQuery(Object.fromEntries(clear.map((n) => [n, ''])));
  return html`<${Empty} icon="search" title=${title}>
    ${(d?.next || next || page === 1) && d?.searched < d?.total_count && html`<p>${words.searched(d.searched, d.total_count, !!next)}</p>`}
    <div class="row">${d?.next && html`<button class="btn" onClick=${() => setQuery({ next: d.next })}>${common.keepSearching}</button>`}
      ${page > 1 && html`<button class="btn" onClick=${() => setFilter({})}>${words.firstPage}</button>`}
      ${clear.some((n) => n !== 'page' && n !== 'next' && route.value.query.get(n)) && html`<button class="btn" onClick=${cleared}>${common.clearFilters}</button>`}</div><//>`;
}

/** @param {{set: string, row: any, done: () => void}} p */
export function Acts({ set, row, done }) {
  return actionsOf[set].map((/** @type {string} */ a, /** @type {number} */ i) => html`<button key=${a} class=${cx('icon', actions[a].hurt && 'hurt', i > 0 && 'more')} title=${actions[a].label}
    aria-label=${words.actOn(actions[a].label, nameOf(row), jidOf(row))} onClick=${() => actOn(set, a, row, done)}><${Icon} name=${actions[a].icon} /></button>`);
}

/** Suggestions of names, which are requested when a list is first shown. @param {string} set */
function useSuggestions(set) {
  const queues = useResource(apiPath('job-queues', [], { limit: 500 }), { every: 0 });
  const errors = useResource(set === 'retries' || set === 'dead-jobs' ? apiPath('errors', [], { set }) : null, { every: 0 });
  const metrics = useResource(apiPath('job-metrics'), { every: 0 });
  return {
    queue: () => (queues.data || []).map((q) => q.name),
    class: () => (metrics.data?.classes || []).filter((c) => !c.other).map((c) => c.name),
    error: () => [...new Map((errors.data?.items || []).map((e) => [e.error_class, [e.error_class, common.jobsOf(e.count)]])).values()],
  };
}
