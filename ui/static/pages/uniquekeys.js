// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { Icon } from '../parts/icon.js';
import { freeable, freeKey, KeyName, keyState } from '../parts/uniquekeys.js';
import { paged, PagerOf } from '../parts/paging.js';
import { Answer, Banner, CopyCurl, Empty, State, Title } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { common } from '../core/words.js';
import { defined, uniqueKeys as words } from '../core/pagewords.js';

/** How many keys the API lists. Others are found by the whole key, the job's ID or the hash. */
const most = 1000;

const columns = [
  { id: 'key', label: common.key, always: true, head: true, class: 'some', sort: (k) => k.key || k.hash, cell: (k) => html`<${KeyName} of=${k} />` },
  { id: 'state', label: common.state, always: true, sort: (k) => k.state, cell: (k) => html`<${State} state=${k.state} text=${keyState(k)} />` },
  { id: 'jid', label: common.job, class: 'lim', sort: (k) => k.jid, cell: (k) => html`<a class="mono cut" title=${k.jid} href=${link('jobs', k.jid)}>${k.jid}</a>` },
  { id: 'since', label: common.since, sort: (k) => k.since || 0, cell: (k) => (k.since ? html`<${Time} at=${k.since} past />` : html`<span class="dim">–</span>`) },
  { id: 'until', label: words.until, sort: (k) => k.until || 0, cell: (k) => (k.until ? html`<${Time} at=${k.until} />` : html`<span class="dim">${words.untilIt[k.state]}</span>`) },
  { id: 'hash', label: words.hash, class: 'lim', wide: true, off: true, cell: (k) => html`<code class="cut" title=${k.hash}>${k.hash}</code>` },
];

/** Returns what has a key, a job's ID or a hash that is the text: beyond what is listed. @param {string} text */
function useExact(text) {
  const ask = (/** @type {any} */ query, wanted = !!text) => useResource(wanted ? apiPath('unique-keys', [], query) : null, { every: 5000, keep: false });
  const found = [ask({ key: text }), ask({ jid: text }), ask({ hash: text }, /^[0-9a-f]{32}$/.test(text))].flatMap((r) => r.data || []);
  return [...new Map(found.map((k) => [nameOf(k), k])).values()];
}

/** @param {any} k */
const nameOf = (k) => `${k.hash} ${k.state} ${k.jid}`;

export default function UniqueKeys() {
  const { query } = route.value;
  const keys = useResource(apiPath('unique-keys'), { every: 5000 });
  const all = keys.data || [];
  const cut = all.length >= most;
  const text = (query.get('text') || '').trim();
  const small = text.toLowerCase();
  const matching = text ? all.filter((/** @type {any} */ k) => [k.key || '', k.jid, k.hash, keyState(k)].some((s) => s.toLowerCase().includes(small))) : all;
  const exact = useExact(cut && !matching.length ? text : '');
  const found = matching.length ? matching : exact;
  const sort = query.get('sort') || '';
  const reverse = query.get('sort_reverse') === 'true';
  const part = paged(sorted(found, columns, sort, reverse));
  const act = (/** @type {any} */ k) => html`<button class="icon" disabled=${!freeable(k, all)} title=${freeable(k, all) ? words.free : words.deleteTheJob}
    aria-label=${defined.actOn(words.free, k.key || k.jid)} onClick=${() => freeKey(k, keys.refresh)}><${Icon} name="out" /></button>`;
  const empty = text
    ? html`<${Empty} icon="search" title=${common.noMatches(words.countOf(all.length))}><button class="btn" onClick=${() => setQuery({ text: '' })}>${common.clearFilter}</button><//>`
    : html`<${Empty} icon="key" title=${words.noneYet}><p>${words.whatTheyAre}</p><pre class="code">${words.example}</pre><//>`;
  return html`<${Title} title=${common.uniqueKeys} badge=${keys.data ? (cut ? words.atLeast(all.length) : count(all.length)) : null} />
    ${cut && html`<${Banner} look="info" icon="info">${words.cut(all.length)}<//>`}
    <section class="card flush" aria-label=${common.uniqueKeys}><div class="toolbar">
      <input class="in small grow" type="search" data-filter placeholder=${words.filterBy} aria-label=${words.filterAll} value=${query.get('text') || ''}
        onInput=${(e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} /><span class="grow"></span>
      <${ColumnChooser} id="unique-keys" columns=${columns} /><${CopyCurl} url=${keys.url} /></div>
    <${Answer} of=${keys}><${Table} id="unique-keys" caption=${common.uniqueKeys} columns=${columns} rows=${part.rows} count=${found.length} loading=${!keys.data} dim=${!!keys.error}
      rowKey=${nameOf} sort=${sort} reverse=${reverse} of=${`${text} ${part.page} ${part.size}`}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '', page: '' })}
      acts=${mayAct.value ? act : undefined} empty=${empty} /><//>
    <${PagerOf} of=${part} total=${found.length} what=${words.inline} /></section>`;
}
