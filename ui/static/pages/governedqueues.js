// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { DefinedList, layerOrder, to } from '../parts/defined.js';
import { Acts, GovernedState, OutOf, WaitingOf } from '../parts/governed.js';
import { failed } from '../parts/toast.js';
import { common } from '../core/words.js';
import { defined, governed as words } from '../core/pagewords.js';

/** Returns the layers that define a queue, in words. @param {any} q */
const layers = (q) => layerOrder.filter((l) => q.layers[l]).map((l) => defined.layers[l]).join(', ');

/** The texts of the list. */
const says = { countOf: words.countOf, noneYet: words.noneYet, howToDefine: words.howToDefine, exampleDefine: words.exampleDefine, filterBy: words.filterBy,
  filterAll: words.filterAll, inline: words.inline, define: words.govern };

/** The states, the worst first. */
const order = ['bypassed', 'full', 'suspended', 'switching', 'draining', 'governed'];

const columns = [
  { id: 'name', label: common.queue, always: true, head: true, class: 'lim', sort: (q) => q.name, cell: (q) => to('governed-queues', q.name) },
  { id: 'state', label: common.state, always: true, sort: (q) => order.indexOf(q.state), cell: (q) => html`<span title=${words.means[q.state]}><${GovernedState} of=${q} /></span>` },
  { id: 'waiting', label: words.waiting, sort: (q) => q.waiting, cell: (q) => html`<${WaitingOf} of=${q} />` },
  { id: 'out', label: words.out, sort: (q) => q.out, cell: (q) => html`<${OutOf} of=${q} />` },
  { id: 'key', label: common.key, class: 'some', wide: true, cell: (q) => html`<span class="mono cut" title=${q.definition.key}>${q.definition.key || html`<span class="dim">–</span>`}</span>` },
  { id: 'layers', label: words.definedBy, class: 'some', wide: true, cell: layers },
];

/** @param {string[]} taken the names that there are */
const openDefine = (taken) => import('../parts/newgoverned.js').then((m) => m.define(taken), failed);

export default function GovernedQueues() {
  const queues = useResource(apiPath('governed-queues'), { every: 5000 });
  return html`<${DefinedList} kind="governed-queues" title=${common.governedQueues} icon="governed" of=${queues} columns=${columns} says=${says} define=${openDefine}
    find=${(q) => [q.name, q.state, q.paused ? common.paused : '', q.definition.key || '', layers(q)]} acts=${(q) => html`<${Acts} q=${q} done=${queues.refresh} row />`} />`;
}
