// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { DefinedList, DefinedState, to } from '../parts/defined.js';
import { Acts, Outcome, Schedule } from '../parts/periodic.js';
import { Time } from '../parts/time.js';
import { failed } from '../parts/toast.js';
import { common } from '../core/words.js';
import { periodic as words } from '../core/pagewords.js';

/** The texts of the list. */
const says = { countOf: words.countOf, noneYet: words.noneYet, howToDefine: words.howToDefine, exampleDefine: words.exampleDefine, filterBy: words.filterBy,
  filterAll: words.filterAll, inline: words.inline };

const columns = [
  { id: 'name', label: common.name, always: true, head: true, class: 'lim', sort: (j) => j.name, cell: (j) => to('periodic-jobs', j.name) },
  { id: 'state', label: common.state, sort: (j) => ['incomplete', 'paused', 'active'].indexOf(j.state), cell: (j) => html`<${DefinedState} of=${j} />` },
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
  const jobs = useResource(apiPath('periodic-jobs'), { every: 5000 });
  return html`<${DefinedList} kind="periodic-jobs" title=${common.periodicJobs} icon="periodic" of=${jobs} columns=${columns} says=${says} define=${openDefine}
    find=${(j) => [j.name, j.class, j.queue, j.state, j.schedule]} acts=${(j) => html`<${Acts} job=${j} done=${jobs.refresh} row />`} />`;
}
