// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { DefinedList, DefinedState, to } from '../parts/defined.js';
import { Acts, Allows, allows, each, HoldsBack, Used, Waiting } from '../parts/limits.js';
import { failed } from '../parts/toast.js';
import { common } from '../core/words.js';
import { limits as words } from '../core/pagewords.js';

/** Returns the jobs that a limit is about, in words. @param {any} l */
const about = (l) => [...(l.definition.queues || []), ...(l.definition.classes || [])].join(', ');

/** The texts of the list. */
const says = { countOf: words.countOf, noneYet: words.noneYet, howToDefine: words.howToDefine, exampleDefine: words.exampleDefine, filterBy: words.filterBy,
  filterAll: words.filterAll, inline: words.inline };

const columns = [
  { id: 'name', label: common.name, always: true, head: true, class: 'lim', sort: (l) => l.name, cell: (l) => to('limits', l.name) },
  { id: 'state', label: common.state, sort: (l) => ['incomplete', 'paused', 'active'].indexOf(l.state), cell: (l) => html`<${DefinedState} of=${l} />` },
  { id: 'allows', label: words.allows, class: 'some', wide: true, cell: (l) => html`<${Allows} limit=${l} />` },
  { id: 'about', label: words.about, class: 'some', wide: true, off: true, cell: (l) => html`<span class="cut" title=${about(l)}>${about(l) || words.allJobs}</span>` },
  { id: 'used', label: common.slotsInUse, sort: (l) => (l.slots ? l.used / l.slots : 0), cell: (l) => html`<${Used} used=${l.used} of=${l.slots} name=${l.name} />` },
  { id: 'waiting', label: words.waiting, right: true, sort: (l) => l.waiting, cell: (l) => html`<${Waiting} limit=${l} />` },
  { id: 'blocked', label: words.heldBack, class: 'fill', sort: (l) => l.blocked, cell: (l) => html`<${HoldsBack} limit=${l} />` },
];

/** @param {string[]} taken the names that there are */
const openDefine = (taken) => import('../parts/newlimit.js').then((m) => m.define(taken), failed);

export default function Limits() {
  const limits = useResource(apiPath('limits'), { every: 5000 });
  return html`<${DefinedList} kind="limits" title=${common.limits} icon="limit" of=${limits} columns=${columns} says=${says} define=${openDefine}
    find=${(l) => [l.name, l.state, about(l), allows(l.definition), each(l.definition)]} acts=${(l) => html`<${Acts} limit=${l} done=${limits.refresh} row />`} />`;
}
