// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count } from '../core/format.js';
import { memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { DefinedState, layerOrder, Layers, Missing } from '../parts/defined.js';
import { useGoverned } from '../parts/governed.js';
import { Icon } from '../parts/icon.js';
import { Acts, allows, each, HoldsBack, remove, Used, Waiting } from '../parts/limits.js';
import { HeldSlots } from '../parts/slots.js';
import { Banner, Card, CopyCurl, Empty, Failure, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed } from '../parts/toast.js';
import { common, actions } from '../core/words.js';
import { defined, limits as words } from '../core/pagewords.js';

const editing = () => import('../parts/newlimit.js');

/** @param {{part: string}} p */
export default function Limit({ part: name }) {
  const url = apiPath('limits', name);
  const r = useResource(url, { every: 5000 });
  const limit = r.data;
  const missing = r.error?.status === 404;
  const shown = limit && !missing;
  const slots = useResource(shown ? apiPath('slots', [], { limit: name }) : null, { every: 5000, keep: false });
  const layers = layerOrder.filter((l) => limit?.layers[l]);
  const texts = Object.fromEntries(layers.map((l) => [l, memberText(r.text, 'layers', l, 'value')]));
  const done = () => {
    r.refresh();
    slots.refresh();
  };
  const of = { limit, done, texts };
  const change = () => editing().then((m) => m.edit(limit, texts.operator || '', done), failed);
  return html`<${Title} crumbs=${[[common.limits, link('limits')]]} title=${name} after=${shown && html`<${DefinedState} of=${limit} />`}>
      ${shown && mayAct.value && html`<${Acts} ...${of} />
        <button class="btn small hurt" onClick=${() => remove(of)}><${Icon} name="trash" small />${common.delete}</button>`}
      <${CopyCurl} url=${url} /><//>
    ${missing ? html`<${Missing} icon="limit" title=${words.notFound} />` : html`<${Failure} error=${r.error} at=${limit ? r.at : 0} refresh=${r.refresh} />`}
    ${shown && html`${limit.problem && html`<${Banner} look="bad" icon="alert">${words.incomplete(limit.problem)}<//>`}
      <div class="grid"><div class="c8 stack cards">
        ${limit.definition.per?.length > 0 && html`<${Parts} limit=${limit} layer=${texts.operator || ''} done=${done} />`}
        <${HeldSlots} title=${words.heldSlots} of=${slots} done=${done} />
        <${Layers} thing=${limit} layers=${layers} texts=${texts} tools=${mayAct.value && html`
          <button class="btn small" onClick=${change}><${Icon} name="edit" small />${actions.change}</button>
          ${texts.operator && html`<button class="btn small hurt" onClick=${() => remove({ ...of, layer: 'operator' })}><${Icon} name="undo" small />${defined.forgetLayer}</button>`}`} /></div>
      <div class="c4 low"><${Card} title=${common.now}><${Facts} limit=${limit} /><//></div></div>`}`;
}

/** @param {{limit: any}} p */
function Facts({ limit }) {
  const d = limit.definition;
  const governed = new Set((useGoverned(d.queues?.length > 0).data || []).map((/** @type {any} */ q) => q.name));
  const links = (/** @type {string} */ page, /** @type {string[]} */ all) => html`<dd>${all.map((n) => html`<div key=${n}><a href=${link(page, n)}>${n}</a>
    ${page === 'job-queues' && governed.has(n) && html` <a class="small" href=${link('governed-queues', n)}>${words.governed}</a>`}</div>`)}</dd>`;
  return html`<dl class="facts"><dt>${words.allows}</dt><dd>${allows(d) || '–'} ${each(d)}</dd>
    ${d.queues?.length > 0 && html`<dt>${common.queues}</dt>${links('job-queues', d.queues)}`}
    ${d.classes?.length > 0 && html`<dt>${common.classes}</dt>${links('job-metrics', d.classes)}`}
    ${!d.queues?.length && !d.classes?.length && html`<dt>${words.about}</dt><dd>${words.allJobs}</dd>`}
    <dt>${common.slotsInUse}</dt><dd><${Used} used=${limit.used} of=${limit.slots} name=${limit.name} /></dd>
    <dt>${words.waiting}</dt><dd><${Waiting} limit=${limit} /></dd>
    <dt>${words.heldBack}</dt><dd><${HoldsBack} limit=${limit} /></dd></dl>`;
}

/** The parts of the jobs that the limit counts apart from each other. @param {{limit: any, layer: string, done: () => void}} p */
function Parts({ limit, layer, done }) {
  const { per } = limit.definition;
  const heads = { queue: common.queue, class: common.class, key: common.key };
  const columns = [
    ...['key', 'queue', 'class'].filter((s) => per.includes(s)).map((s, i) => ({
      id: s, label: heads[s], always: true, head: !i, class: 'lim', cell: (p) => html`<span class="cut" title=${p[s]}>${p[s] || html`<span class="dim">${words.none}</span>`}</span>`,
    })),
    { id: 'used', label: common.slotsInUse, cell: (p) => html`<${Used} used=${p.used} of=${p.concurrency} name=${nameOf(p)} />` },
    { id: 'waiting', label: words.waiting, right: true, cell: (p) => html`<span class="num">${count(p.waiting)}</span>` },
    ...(limit.definition.rate ? [{ id: 'opens', label: words.next, cell: (p) => (p.opens ? html`<${Time} at=${p.opens} />` : common.now) }] : []),
  ];
  const act = (/** @type {any} */ p) => html`<button class="icon" title=${actions.change} aria-label=${defined.actOn(actions.change, nameOf(p))}
    onClick=${() => editing().then((m) => m.editKey(limit, layer, p.key || '', done), failed)}><${Icon} name="edit" /></button>`;
  return html`<${Card} flush title=${words.parts(per)}>
    <${Table} id="limit-parts" caption=${words.parts(per)} columns=${columns} rows=${limit.parts || []} rowKey=${nameOf} still=${false}
      acts=${mayAct.value && per.includes('key') ? act : undefined} empty=${html`<${Empty} icon="limit" title=${words.noParts}><p>${words.whatIsCounted}</p><//>`} />
    ${limit.parts_left_off > 0 && html`<p class="notes dim small">${words.partsLeftOff(limit.parts_left_off)}</p>`}<//>`;
}

/** Returns the name of a part. @param {any} p */
const nameOf = (p) => [p.key, p.queue, p.class].filter(Boolean).join(' ') || words.none;
