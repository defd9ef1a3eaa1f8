// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { bytes, count, plural } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { Icon } from '../parts/icon.js';
import { Card, CopyCurl, Empty, Failure, State, Title, Util } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Since, Time } from '../parts/time.js';
import { Usual } from '../parts/usual.js';
import { byWeight, tellProcesses } from './processes.js';

/** @param {{part: string}} p */
export default function Process({ part: identity }) {
  const url = apiPath('processes', identity);
  const r = useResource(url, { topic: 'processes' });
  const p = r.data;
  const work = [...(p?.work || [])].sort((a, b) => (a.started_at || 0) - (b.started_at || 0));
  const columns = [{ id: 'class', label: 'Class', always: true, head: true, class: 'lim', cell: (/** @type {any} */ w) => html`<a class="cut" title=${w.class} href=${link('job-metrics', w.class)}>${w.class}</a>` }, { id: 'jid', label: 'ID', cell: (/** @type {any} */ w) => html`<a class="mono" href=${link('jobs', w.jid)}>${w.jid}</a>` }, { id: 'queue', label: 'Queue', class: 'lim', cell: (/** @type {any} */ w) => html`<a class="cut" title=${w.queue} href=${link('job-queues', w.queue)}>${w.queue}</a>` }, { id: 'for', label: 'Running for', right: true, cell: (/** @type {any} */ w) => html`<span class="row" style=${{ justifyContent: 'end' }}><${Usual} w=${w} /><${Since} since=${w.started_at} /></span>` }];
  const tell = (/** @type {'quiet'|'stop'} */ what) => tellProcesses(what, [identity], p.busy, r.refresh);
  return html`<${Title} crumbs=${[['Worker processes', link('worker-processes')]]} title=${identity} after=${p && html`<${State} state=${p.state} />`}>
      ${p && mayAct.value && p.state !== 'lost' && html`<button class="btn small" disabled=${p.state !== 'live'} onClick=${() => tell('quiet')}><${Icon} name="quiet" small />Quiet</button><button class="btn small hurt" disabled=${p.state === 'stopping'} onClick=${() => tell('stop')}><${Icon} name="stop" small />Stop</button>`}<${CopyCurl} url=${url} /><//>
    <${Failure} error=${r.error} at=${p ? r.at : 0} refresh=${r.refresh} />
    ${p && html`<div class="grid"><${Card} title="Process" class="c4"><dl class="facts"><dt>Host</dt><dd>${p.hostname}</dd><dt>PID</dt><dd>${p.pid}</dd><dt>Tag</dt><dd>${p.tag || '–'}</dd><dt>Version</dt><dd>${p.version || '–'}</dd><dt>Started</dt><dd><${Time} at=${p.started_at} /></dd><dt>Last heartbeat</dt><dd><${Time} at=${p.heard_at} /></dd><dt>Memory</dt><dd>${bytes(p.rss_kb * 1024)}</dd><dt>Round trip</dt><dd>${p.rtt_us ? (p.rtt_us / 1000).toFixed(1) + ' ms' : '–'}</dd>
        <dt>Slots</dt><dd><${Util} part=${p.concurrency ? p.busy / p.concurrency : 0} text=${`${count(p.busy)} of ${count(p.concurrency)}`} label="Slots in use" /></dd><dt>Queues</dt><dd>${byWeight(p).map((/** @type {string} */ q) => html`<a class="tag" href=${link('job-queues', q)}>${q}${p.weights?.[q] ? ' ×' + p.weights[q] : ''}</a> `)}</dd>
        ${Object.entries(p.labels || {}).map(([k, v]) => html`<dt>${k}</dt><dd>${v}</dd>`)}</dl>
        ${p.lanes?.length > 0 && html`<h2 style=${{ marginTop: '1rem' }}>Lanes</h2><ul class="att">${p.lanes.map((/** @type {any} */ l) => html`<li><div class="grow"><span class="strong">${l.name}</span><div class="dim small">${(l.queues || []).join(', ')}</div></div><${Util} part=${l.concurrency ? l.busy / l.concurrency : 0} text=${`${l.busy}/${l.concurrency}`} label=${'Slots of lane ' + l.name} /></li>`)}</ul>`}<//>
      <${Card} flush title="Running jobs" class="c8"><${Table} id="work" caption="Running jobs" columns=${columns} rows=${work} rowKey=${(/** @type {any} */ w) => w.jid + w.started_at} open=${(/** @type {any} */ w) => navigate(link('jobs', w.jid))} empty=${html`<${Empty} icon="worker" title=${p.busy ? `${plural(p.busy, 'running job')}, but the worker does not report which` : 'Idle'} />`} /><//></div>`}`;
}
