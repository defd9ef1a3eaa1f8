// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { Icon } from '../parts/icon.js';
import { paged, PagerOf } from '../parts/paging.js';
import { Acts, JobState, Outcome, Schedule } from '../parts/periodic.js';
import { Answer, CopyCurl, Empty, Title } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed } from '../parts/toast.js';
import { common } from '../core/words.js';
import { periodic as words } from '../core/pagewords.js';

/** @param {string} page @param {string} name */
const to = (page, name) => (name ? html`<a class="cut" title=${name} href=${link(page, name)}>${name}</a>` : '–');

const columns = [
  { id: 'name', label: common.name, always: true, head: true, class: 'lim', sort: (j) => j.name, cell: (j) => to('periodic-jobs', j.name) },
  { id: 'state', label: common.state, sort: (j) => ['incomplete', 'paused', 'active'].indexOf(j.state), cell: (j) => html`<${JobState} job=${j} />` },
  { id: 'schedule', label: words.due, class: 'some', cell: (j) => html`<${Schedule} job=${j} />` },
  { id: 'class', label: common.class, class: 'lim', wide: true, sort: (j) => j.class, cell: (j) => to('job-metrics', j.class) },
  { id: 'queue', label: common.queue, class: 'lim', wide: true, sort: (j) => j.queue, cell: (j) => to('job-queues', j.queue) },
  { id: 'next', label: words.nextTick, sort: (j) => j.next[0] ?? null, cell: (j) => html`<${Time} at=${j.next[0]} />` },
  { id: 'last', label: words.lastTick, sort: (j) => j.last?.tick ?? null, cell: (j) => html`<${Last} tick=${j.last} />` },
];

/** The newest tick. Its job is a click away. @param {{tick: any}} p */
function Last({ tick }) {
  if (!tick) return html`<span class="dim">–</span>`;
  const outcome = html`<${Outcome} tick=${tick} />`;
  return html`<span class="nowrap">${tick.jid ? html`<a href=${link('jobs', tick.jid)}>${outcome}</a>` : outcome}
    <span class="dim small"><${Time} at=${tick.tick} past=${tick.outcome === 'made'} /></span></span>`;
}

/** @param {string[]} taken the names that there are */
export const openDefine = (taken) => import('../parts/newperiodic.js').then((m) => m.define(taken), failed);

export default function Periodics() {
  const query = route.value.query;
  const jobs = useResource(apiPath('periodic-jobs'), { every: 5000 });
  const all = jobs.data || [];
  const text = (query.get('text') || '').toLowerCase();
  const sort = query.get('sort') || '';
  const reverse = query.get('sort_reverse') === 'true';
  const found = text ? all.filter((j) => [j.name, j.class, j.queue, j.state, j.schedule].some((s) => s.toLowerCase().includes(text))) : all;
  const part = paged(sorted(found, columns, sort, reverse));
  const empty = text
    ? html`<${Empty} icon="search" title=${common.noMatches(words.jobsOf(all.length))}><button class="btn" onClick=${() => setQuery({ text: '' })}>${common.clearFilter}</button><//>`
    : html`<${Empty} icon="periodic" title=${words.noneYet}><p>${words.howToDefine}</p><pre class="code">${words.exampleDefine}</pre><//>`;
  return html`<${Title} title=${common.periodicJobs} badge=${jobs.data ? count(all.length) : null}>
      ${mayAct.value && html`<button class="btn small" onClick=${() => openDefine(all.map((j) => j.name))}><${Icon} name="plus" small />${words.define}</button>`}<//>
    <section class="card flush" aria-label=${common.periodicJobs}><div class="toolbar">
      <input class="in small grow" type="search" data-filter placeholder=${words.filterBy} aria-label=${words.filterJobs} value=${query.get('text') || ''}
        onInput=${(e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} /><span class="grow"></span>
      <${ColumnChooser} id="periodic-jobs" columns=${columns} /><${CopyCurl} url=${jobs.url} /></div>
    <${Answer} of=${jobs}><${Table} id="periodic-jobs" caption=${common.periodicJobs} columns=${columns} rows=${part.rows} count=${found.length} loading=${!jobs.data} dim=${!!jobs.error}
      rowKey=${(j) => j.name} sort=${sort} reverse=${reverse} of=${`${text} ${part.page} ${part.size}`}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '', page: '' })}
      open=${(j) => navigate(link('periodic-jobs', j.name))} acts=${mayAct.value ? (j) => html`<${Acts} job=${j} done=${jobs.refresh} row />` : undefined} empty=${empty} /><//>
    <${PagerOf} of=${part} total=${found.length} what=${words.jobs} /></section>`;
}
