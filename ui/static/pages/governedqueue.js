// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { DefinedState, layerOrder, Layers, Missing, to } from '../parts/defined.js';
import { Acts, GovernedState, Meaning, OutOf, remove, WaitingOf } from '../parts/governed.js';
import { Icon } from '../parts/icon.js';
import { Allows, HoldsBack, Used } from '../parts/limits.js';
import { HeldSlots } from '../parts/slots.js';
import { Answer, Card, CopyCurl, Empty, Failure, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed } from '../parts/toast.js';
import { common, actions } from '../core/words.js';
import { defined, governed as words, limits as limitWords } from '../core/pagewords.js';

/** @param {{part: string}} p */
export default function GovernedQueue({ part: name }) {
  const url = apiPath('governed-queues', name);
  const r = useResource(url, { every: 5000 });
  const q = r.data;
  const missing = r.error?.status === 404;
  const shown = q && !missing;
  const slots = useResource(shown ? apiPath('slots', [], { queue: name }) : null, { every: 5000, keep: false });
  const layers = layerOrder.filter((l) => q?.layers[l]);
  const texts = Object.fromEntries(layers.map((l) => [l, memberText(r.text, 'layers', l, 'value')]));
  const done = () => {
    r.refresh();
    slots.refresh();
  };
  const of = { q, done, texts };
  const change = () => import('../parts/newgoverned.js').then((m) => m.edit(q, texts.operator || '', done), failed);
  return html`<${Title} crumbs=${[[common.governedQueues, link('governed-queues')]]} title=${name} after=${shown && html`<${GovernedState} of=${q} />`}>
      ${shown && mayAct.value && html`<${Acts} ...${of} />
        <button class="btn small hurt" onClick=${() => remove(of)}><${Icon} name="trash" small />${words.forget}</button>`}
      <${CopyCurl} url=${url} /><//>
    ${missing ? html`<${Missing} icon="governed" title=${words.notFound} />` : html`<${Failure} error=${r.error} at=${q ? r.at : 0} refresh=${r.refresh} />`}
    ${shown && html`<${Meaning} q=${q} />
      <div class="grid"><div class="c8 stack cards">
        <${Layers} thing=${q} layers=${layers} texts=${texts} tools=${mayAct.value && html`
          <button class="btn small" onClick=${change}><${Icon} name="edit" small />${actions.change}</button>
          ${texts.operator && html`<button class="btn small hurt" onClick=${() => remove({ ...of, layer: 'operator' })}><${Icon} name="undo" small />${defined.forgetLayer}</button>`}`} />
        <${Counting} name=${name} />
        <${HeldSlots} title=${words.outJobs} of=${slots} done=${done} /></div>
      <div class="c4 low"><${Card} title=${common.now}><${Facts} q=${q} /><//></div></div>`}`;
}

/** @param {{q: any}} p */
function Facts({ q }) {
  const d = q.definition;
  const weights = Object.entries(d.weights || {});
  return html`<dl class="facts"><dt>${common.queue}</dt><dd>${to('job-queues', q.name)}</dd>
    <dt>${common.state}</dt><dd><${GovernedState} of=${q} /> <span class="dim small">${words.since(html`<${Time} at=${q.since} past />`)}</span></dd>
    <dt>${words.waiting}</dt><dd><${WaitingOf} of=${q} />${!d.max_waiting && html` <span class="dim small">${words.anyNumber}</span>`}
      <div><a class="small" href=${link('gated-jobs', [], { queue: q.name })}>${words.showJobs}</a></div></dd>
    <dt>${words.out}</dt><dd><${OutOf} of=${q} />${!d.ahead && html` <span class="dim small">${words.asWorkersSay}</span>`}</dd>
    <dt>${common.key}</dt><dd>${d.key ? html`<code class="anywhere">${d.key}</code>` : words.noKey}</dd>
    ${weights.length > 0 && html`<dt>${words.weights}</dt><dd>${weights.map(([key, n]) => html`<div class="anywhere" key=${key}>${words.weight(key, n)}</div>`)}</dd>`}</dl>`;
}

/** The limits that count the jobs of the queue. @param {{name: string}} p */
function Counting({ name }) {
  const all = useResource(apiPath('limits'), { every: 5000 });
  const rows = (all.data || []).filter((/** @type {any} */ l) => !l.definition.queues?.length || l.definition.queues.includes(name));
  const columns = [
    { id: 'name', label: common.name, always: true, head: true, class: 'lim', cell: (l) => to('limits', l.name) },
    { id: 'state', label: common.state, cell: (l) => html`<${DefinedState} of=${l} />` },
    { id: 'allows', label: limitWords.allows, class: 'lim', wide: true, cell: (l) => html`<${Allows} limit=${l} />` },
    { id: 'used', label: common.slotsInUse, cell: (l) => html`<${Used} used=${l.used} of=${l.slots} name=${l.name} />` },
    { id: 'blocked', label: limitWords.heldBack, class: 'fill', cell: (l) => html`<${HoldsBack} limit=${l} />` },
  ];
  return html`<${Card} flush title=${words.limits}><${Answer} of=${all}><${Table} id="governed-limits" caption=${words.limits} columns=${columns} rows=${rows} loading=${!all.data}
    rowKey=${(l) => l.name} open=${(l) => navigate(link('limits', l.name))}
    empty=${html`<${Empty} icon="limit" title=${words.noLimits}><p>${words.whatLimitsDo}</p><a class="btn" href=${link('limits')}>${common.limits}</a><//>`} /><//><//>`;
}
