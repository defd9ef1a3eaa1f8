// @ts-check
// Failures by error: one row for each decision.
import { cx, html, useEffect, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { count, rate, short } from '../core/format.js';
import { whyNotMany } from '../core/overview.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setFilter, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { fixed } from '../core/times.js';
import { actions, actOnMany, bulkOf } from './actions.js';
import { FilterBox } from './filter.js';
import { Icon } from './icon.js';
import { Share } from './share.js';
import { Answer, CopyCurl, Empty, Segments } from './states.js';
import { ColumnChooser, sorted, Table } from './table.js';
import { Time } from './time.js';
import { failed } from './toast.js';
import { common, storm as words } from '../core/words.js';

/** How many jobs of a set the sidecar searches at most. */
const mostSearched = 100_000;
const names = ['queue', 'class', 'from', 'to'];

/**
 * Returns how many there are now. If not all were counted before, a group is larger than its
 * number.
 * @param {string} set
 * @param {Record<string, string>} filter
 * @param {number} least
 */
async function countNow(set, filter, least) {
  const { data } = await ask(apiPath(set, [], { ...filter, page: 1, page_size: 1 }));
  return { count: data.filtered_count ?? Math.max(least, data.filtered_count_at_least), asOf: data.as_of, expected: data.filtered_count };
}

/** How many hosts of a group are named. */
const mostHosts = 2;

/** Returns a host without its domain. @param {string} host */
const shortHost = (host) => (/^[\d.]+$/.test(host) ? host : host.split('.')[0]);

/**
 * The hosts where a group's jobs failed recently, those with most failures first.
 * @param {{g: any}} p
 */
function Hosts({ g }) {
  if (!g.host_count) return html`<span class="dim">–</span>`;
  const more = g.host_count - mostHosts;
  const all = g.hosts.map((h) => words.onHost(h.host, h.count)).join('\n');
  const one = (h, /** @type {number} */ i) => html`${i > 0 && ', '}<a href=${link('worker-processes', [], { text: h.host + ':' })}>${shortHost(h.host)}</a>
    <span class="dim num"> ${count(h.count)}</span>`;
  return html`<span class="cut" title=${all}>${g.hosts.slice(0, mostHosts).map(one)}${more > 0 && html`<span class="dim"> ${words.moreHosts(more)}</span>`}</span>`;
}

/** The class of an error, and the message of one job. @param {{set: string, g: any}} p */
const What = ({ set, g }) => html`<a class="bad strong cut" href=${link(set, [], { error: g.fingerprint })} title=${g.error_class}>${g.error_class || common.error}</a>
  <span class="dim cut light" title=${short(g.message)}>${short(g.example ?? g.message)}</span>`;

/**
 * @param {string} set
 * @param {number} total
 * @param {number} over how many seconds `recent` covers
 * @returns {import('./table.js').Column[]}
 */
const columnsOf = (set, total, over) => [
  { id: 'error', label: common.error, always: true, head: true, class: 'fill', sort: (g) => g.error_class, cell: (g) => html`<${What} set=${set} g=${g} />` },
  { id: 'class', label: common.class, class: 'lim', sort: (g) => g.class, cell: (g) => html`<a class="cut" href=${link('job-metrics', g.class)}>${g.class}</a>` },
  { id: 'count', label: common.jobs, right: true, sort: (g) => g.count, cell: (g) => html`<span class="strong">${count(g.count)}</span>` },
  { id: 'share', label: common.share, wide: true, off: true, cell: (g) => html`<${Share} part=${g.count / total} bad />` },
  {
    id: 'rate', label: words.rate, right: true, sort: (g) => g.recent,
    cell: (g) => html`<span class=${g.recent ? '' : 'dim'} title=${words.recent(g.recent, over)}>${g.recent ? rate(g.recent / over) : '–'}</span>`,
  },
  { id: 'hosts', label: words.hosts, wide: true, class: 'lim', sort: (g) => g.host_count, cell: (g) => html`<${Hosts} g=${g} />` },
  { id: 'first', label: set === 'retries' ? words.nextDue : words.firstDied, wide: true, off: set === 'dead-jobs', sort: (g) => g.first, cell: (g) => html`<${Time} at=${g.first} />` },
  { id: 'last', label: set === 'retries' ? words.lastDue : words.lastDied, wide: true, off: set === 'retries', sort: (g) => g.last, cell: (g) => html`<${Time} at=${g.last} />` },
];

/**
 * The bulk actions on a group.
 * @param {{set: string, g: any, act: (action: string, g: any) => void}} p
 */
const Acts = ({ set, g, act }) => bulkOf[set].map((/** @type {string} */ a, /** @type {number} */ i) => {
  const label = a === 'change' ? common.reschedule : actions[a].label;
  return html`<button class=${cx('icon', actions[a].hurt && 'hurt', i > 0 && 'more')} disabled=${!!whyNotMany.value} title=${whyNotMany.value || label}
    aria-label=${words.actOn(label, g)} onClick=${() => act(a, g)}><${Icon} name=${a === 'change' ? 'clock' : actions[a].icon} /></button>`;
});

/** Switches between a list and its errors. @param {{storm: boolean}} p */
export const ListOrErrors = ({ storm }) => html`<${Segments} label=${common.view} value=${storm ? 'storm' : 'list'}
  onChange=${(/** @type {string} */ v) => setQuery({ view: v === 'storm' ? 'storm' : '' })} options=${[['list', common.list], ['storm', common.byError]]} />`;

/** @param {{set: string}} p */
export function Storm({ set }) {
  const query = route.value.query;
  const filter = Object.fromEntries(names.filter((n) => query.get(n)).map((n) => [n, query.get(n)]));
  const url = apiPath('errors', [], { set, ...filter });
  const groups = useResource(url, { topic: set === 'retries' ? 'retries' : 'dead', every: 10_000 });
  // Not all jobs had been read. The next answer has more of them.
  const partial = groups.data?.complete === false && groups.data.searched < mostSearched;
  useEffect(() => {
    if (!partial) return undefined;
    const timer = setTimeout(groups.refresh, 1000);
    return () => clearTimeout(timer);
  }, [partial, groups.at]);
  const items = groups.data?.items || [];
  const total = items.reduce((/** @type {number} */ n, g) => n + g.count, 0);
  const [sort, setSort] = useState({ id: 'count', reverse: true });
  const act = async (/** @type {string} */ action, g) => {
    const f = { ...fixed(filter, groups.at), error: g.fingerprint };
    // The offsets that were seen, so that no later job is affected.
    const seen = { set, filter: f, group: g, count: g.count, asOf: groups.data.as_of, expected: g.count };
    try {
      await actOnMany(action, groups.data.complete ? seen : { ...seen, ...await countNow(set, f, g.count) }, groups.refresh);
    } catch (e) {
      failed(e);
    }
  };
  const columns = columnsOf(set, total, groups.data?.recent_seconds);
  return html`<section class="card flush" aria-label=${common.byError}><div class="toolbar">
      <${FilterBox} label=${words.filterErrors} names=${names} when=${set === 'dead-jobs' ? 'died' : 'due'} query=${query}
        group=${items.find((g) => g.fingerprint === query.get('error'))} onChange=${setFilter} />
      <${ColumnChooser} id=${'storm-' + set} columns=${columns} /><${CopyCurl} url=${url} /></div>
    <${Answer} of=${groups}>
    ${groups.data?.complete === false && html`<p class="toolbar dim small">${words.counted(groups.data.searched)}</p>`}
    <${Table} id=${'storm-' + set} caption=${words.errors} columns=${columns} rows=${sorted(items, columns, sort.id, sort.reverse)}
      loading=${groups.loading || !groups.data} busy=${groups.stale} of=${groups.url} rowKey=${(g) => g.fingerprint} sort=${sort.id} reverse=${sort.reverse}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ reverse) => setSort({ id, reverse })} open=${(g) => navigate(link(set, [], { error: g.fingerprint }))}
      acts=${mayAct.value ? (g) => html`<${Acts} set=${set} g=${g} act=${act} />` : undefined}
      empty=${html`<${Empty} title=${words.noErrors}><p>${words.noneFailed}</p><//>`} /><//>
  </section>`;
}
