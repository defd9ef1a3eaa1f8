// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { exact } from '../core/format.js';
import { memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route } from '../core/router.js';
import { inZone, scheduleOf } from '../core/schedule.js';
import { mayAct } from '../core/session.js';
import { DefinedState, layerOrder, Layers, Missing } from '../parts/defined.js';
import { Icon } from '../parts/icon.js';
import { Payload } from '../parts/payload.js';
import { Acts, Late, Outcome, remove, Ticks } from '../parts/periodic.js';
import { Banner, Card, CopyCurl, Empty, Failure, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed } from '../parts/toast.js';
import { common, actions } from '../core/words.js';
import { defined, periodic as words } from '../core/pagewords.js';

/** @param {{part: string}} p */
export default function Periodic({ part: name }) {
  const url = apiPath('periodic-jobs', name, { next: 10 });
  const r = useResource(url, { every: 5000 });
  const job = r.data;
  const layers = layerOrder.filter((l) => job?.layers[l]);
  const texts = Object.fromEntries(layers.map((l) => [l, memberText(r.text, 'layers', l, 'value')]));
  const args = memberText(r.text, 'definition', 'job', 'args');
  const change = () => import('../parts/newperiodic.js').then((m) => m.edit(job, texts.operator || '', r.refresh), failed);
  const of = { job, done: r.refresh, texts };
  const missing = r.error?.status === 404;
  return html`<${Title} crumbs=${[[common.periodicJobs, link('periodic-jobs')]]} title=${name} after=${job && !missing && html`<${DefinedState} of=${job} />`}>
      ${job && !missing && mayAct.value && html`<${Acts} job=${job} done=${r.refresh} />
        <button class="btn small hurt" onClick=${() => remove(of)}><${Icon} name="trash" small />${common.delete}</button>`}
      <${CopyCurl} url=${url} /><//>
    ${missing ? html`<${Missing} icon="periodic" title=${words.notFound} />` : html`<${Failure} error=${r.error} at=${job ? r.at : 0} refresh=${r.refresh} />`}
    ${job && !missing && html`${job.problem && html`<${Banner} look="bad" icon="alert">${words.incomplete(job.problem)}<//>`}
      <div class="grid"><div class="c8 stack cards">
        <${Layers} thing=${job} layers=${layers} texts=${texts} tools=${mayAct.value && html`
          <button class="btn small" onClick=${change}><${Icon} name="edit" small />${actions.change}</button>
          ${texts.operator && html`<button class="btn small hurt" onClick=${() => remove({ ...of, layer: 'operator' })}><${Icon} name="undo" small />${defined.forgetLayer}</button>`}`} />
        <${Card} flush title=${words.ticks}><${Past} job=${job} /><//>
        ${args && html`<${Card} title=${common.arguments}><${Payload} text=${args} label=${words.theArguments} path="job.args" name=${name + '-args'} /><//>`}</div>
      <div class="c4 stack cards low"><${Card} title=${words.schedule}><${Facts} job=${job} /><//>
        <${Card} title=${words.nextTicks}>${job.state === 'paused' && html`<p class="dim small">${words.skippedWhilePaused}</p>`}
          ${job.next.length ? html`<${Ticks} ticks=${job.next} zone=${job.definition.tz} />` : html`<p class="dim">${words.noneToCome}</p>`}<//></div></div>`}`;
}

/** @param {{job: any}} p */
function Facts({ job }) {
  const { last, definition: d } = job;
  const { text, written } = scheduleOf(d);
  return html`<dl class="facts"><dt>${words.due}</dt><dd>${text || '–'}</dd>${written && html`<dt>${words.cron}</dt><dd>${written}</dd>`}
    <dt>${common.class}</dt><dd>${job.class ? html`<a href=${link('job-metrics', job.class)}>${job.class}</a>` : '–'}</dd>
    <dt>${common.queue}</dt><dd>${job.queue ? html`<a href=${link('job-queues', job.queue)}>${job.queue}</a>` : '–'}</dd>
    <dt>${words.lastTick}</dt><dd>${last ? html`<${Outcome} tick=${last} /> <${Time} at=${last.tick} past=${last.outcome === 'made'} />` : '–'}</dd>
    <dt>${words.lateTicks}</dt><dd>${{ last: words.lateLast, all: words.lateAll }[d.catch_up] || words.lateSkip}</dd>
    <dt>${words.overlap}</dt><dd>${d.overlap === 'skip' ? words.overlapSkip : words.overlapAllow}</dd></dl>`;
}

/** The newest ticks and what became of them. The tick that the URL names is marked. @param {{job: any}} p */
function Past({ job }) {
  const zone = job.definition.tz;
  const named = route.value.query.get('tick');
  const columns = [
    {
      id: 'tick', label: words.tick, always: true, head: true, class: 'nowrap',
      cell: (t) => html`<span class="num" title=${exact(t.tick)} aria-current=${named === String(t.tick) ? 'true' : undefined}>${inZone(t.tick, zone)}</span>
        ${t.count > 1 && html` <span class="dim small">${words.run(t.count)}</span>`}`,
    },
    { id: 'outcome', label: words.outcome, cell: (t) => html`<${Outcome} tick=${t} />` },
    { id: 'late', label: words.late, right: true, cell: (t) => html`<${Late} tick=${t} />` },
    { id: 'jid', label: common.job, class: 'lim', cell: (t) => (t.jid ? html`<a class="mono cut" title=${t.jid} href=${link('jobs', t.jid)}>${t.jid}</a>` : html`<span class="dim">–</span>`) },
    { id: 'actor', label: words.by, class: 'lim', wide: true, cell: (t) => html`<span class="cut" title=${t.actor}>${t.actor || ''}</span>` },
  ];
  return html`<${Table} id="ticks" caption=${words.ticks} columns=${columns} rows=${job.ticks || []} rowKey=${(t) => `${t.tick} ${t.outcome} ${t.jid || t.at}`}
    open=${(t) => t.jid && navigate(link('jobs', t.jid))} empty=${html`<${Empty} icon="periodic" title=${words.noTicksYet} />`} />`;
}
