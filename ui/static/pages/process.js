// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { bytes, count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { Icon } from '../parts/icon.js';
import { Card, CopyCurl, Empty, Failure, State, Title, Util } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Since, Time } from '../parts/time.js';
import { Usual } from '../parts/usual.js';
import { byWeight, sendToProcesses } from './processes.js';
import { common } from '../core/words.js';
import { process as words } from '../core/pagewords.js';

const columns = [
  {
    id: 'class', label: common.class, always: true, head: true, class: 'lim',
    cell: (w) => html`<a class="cut" title=${w.class} href=${link('job-metrics', w.class)}>${w.class}</a>`,
  },
  { id: 'jid', label: common.id, class: 'lim', cell: (w) => html`<a class="mono cut" title=${w.jid} href=${link('jobs', w.jid)}>${w.jid}</a>` },
  {
    id: 'queue', label: common.queue, class: 'lim', wide: true,
    cell: (w) => html`<a class="cut" title=${w.queue} href=${link('job-queues', w.queue)}>${w.queue}</a>`,
  },
  { id: 'for', label: common.runningFor, right: true, cell: (w) => html`<span class="row end"><${Usual} w=${w} /><${Since} since=${w.started_at} /></span>` },
];

/** @param {{part: string}} p */
export default function Process({ part: identity }) {
  const url = apiPath('processes', identity);
  const r = useResource(url, { topic: 'processes' });
  const p = r.data;
  const work = [...(p?.work || [])].sort((a, b) => (a.started_at || 0) - (b.started_at || 0));
  const send = (/** @type {'quiet'|'stop'} */ what) => sendToProcesses(what, [identity], p.busy, r.refresh);
  return html`<${Title} crumbs=${[[common.workerProcesses, link('worker-processes')]]} title=${identity} after=${p && html`<${State} state=${p.state} />`}>
      ${p && mayAct.value && p.state !== 'lost' && html`
        <button class="btn small" disabled=${p.state !== 'live'} onClick=${() => send('quiet')}><${Icon} name="quiet" small />${common.quiet}</button>
        <button class="btn small hurt" disabled=${p.state === 'stopping'} onClick=${() => send('stop')}><${Icon} name="stop" small />${common.stop}</button>`}
      <${CopyCurl} url=${url} /><//>
    <${Failure} error=${r.error} at=${p ? r.at : 0} refresh=${r.refresh} />
    ${p && html`<div class="grid"><${Card} title=${common.process} class="c4"><${Facts} p=${p} />
        ${p.lanes?.length > 0 && html`<h2 class="below">${words.lanes}</h2><ul class="att">${p.lanes.map((l) => html`<${Lane} l=${l} />`)}</ul>`}<//>
      <${Card} flush title=${common.runningJobs} class="c8"><${Table} id="work" caption=${common.runningJobs} columns=${columns} rows=${work}
        rowKey=${(w) => w.jid + w.started_at} open=${(w) => navigate(link('jobs', w.jid))}
        empty=${html`<${Empty} icon="worker" title=${p.busy ? words.unlisted(p.busy) : words.idle} />`} /><//></div>`}`;
}

/** @param {{p: any}} a */
function Facts({ p }) {
  const slots = common.of(count(p.busy), count(p.concurrency));
  const queue = (/** @type {string} */ q) => html`<a class="tag" href=${link('job-queues', q)}>${q}${p.weights?.[q] ? ' ×' + p.weights[q] : ''}</a> `;
  return html`<dl class="facts"><dt>${words.host}</dt><dd>${p.hostname}</dd>
    <dt>${words.pid}</dt><dd>${p.pid}</dd>
    <dt>${words.tag}</dt><dd>${p.tag || '–'}</dd>
    <dt>${words.version}</dt><dd>${p.version || '–'}</dd>
    <dt>${common.started}</dt><dd><${Time} at=${p.started_at} /></dd>
    <dt>${common.heartbeat}</dt><dd><${Time} at=${p.heard_at} /></dd>
    <dt>${common.memory}</dt><dd>${bytes(p.rss_kb * 1024)}</dd>
    <dt>${common.roundTrip}</dt><dd>${p.rtt_us ? common.millis(p.rtt_us) : '–'}</dd>
    <dt>${common.slots}</dt><dd><${Util} part=${p.concurrency ? p.busy / p.concurrency : 0} text=${slots} label=${common.slotsInUse} /></dd>
    <dt>${common.queues}</dt><dd>${byWeight(p).map(queue)}</dd>
    ${Object.entries(p.labels || {}).map(([k, v]) => html`<dt>${k}</dt><dd>${v}</dd>`)}</dl>`;
}

/** A part of the process with slots of its own. @param {{l: any}} p */
const Lane = ({ l }) => html`<li><div class="grow"><span class="strong">${l.name}</span><div class="dim small">${(l.queues || []).join(', ')}</div></div>
  <${Util} part=${l.concurrency ? l.busy / l.concurrency : 0} text=${`${l.busy}/${l.concurrency}`} label=${words.slotsOfLane(l.name)} /></li>`;
