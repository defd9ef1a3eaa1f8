// @ts-check
import { html, useEffect, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { skew } from '../core/clock.js';
import { count, seconds } from '../core/format.js';
import { overview, refreshOverview } from '../core/overview.js';
import { mayAdminister } from '../core/session.js';
import { confirm } from '../parts/dialog.js';
import { Card, CopyCurl, Empty, State, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed, toast } from '../parts/toast.js';

/** @type {[string, string][]} */
const checks = [['broker-connection', 'Broker reachable'], ['alarms', 'Broker accepts messages'], ['views-caught-up', 'Streams caught up'], ['leader', 'Leader responding'], ['workers', 'Workers available']];

/** The leader's and the standby's counters: a name, and what it counts. @type {Record<string, [string, string]>} */
const meanings = {
  epochs: ['Leader terms', 'times this process became leader'], fired: ['Dispatched', 'jobs sent to their queues'], returned: ['Returned', 'jobs whose queue did not exist'], refused: ['Refused', 'jobs that a queue did not accept'],
  dead_lettered: ['Dead-lettered', 'rejected by workers, kept as dead jobs'], commands: ['Actions', 'carried out for users'], lost_connections: ['Lost connections', 'to the broker'],
};

/** A check that fails answers 503: that is its answer, not an error of the page. */
function useChecks() {
  const [state, set] = useState(/** @type {Record<string, {ok: boolean, reason: string}>} */ ({}));
  useEffect(() => {
    let ended = false;
    const load = () => checks.forEach(([name]) => ask(apiPath('health/checks', name)).then(() => ({ ok: true, reason: '' }), (e) => ({ ok: false, reason: e.reason })).then((r) => { if (!ended) set((s) => ({ ...s, [name]: r })); }));
    load();
    const timer = setInterval(() => { if (!document.hidden) load(); }, 10_000);
    return () => { ended = true; clearInterval(timer); };
  }, []);
  return state;
}

/** @param {boolean} discard */
async function release(discard) {
  const yes = await confirm({ title: discard ? 'Discard held jobs that are due?' : 'Release held jobs?', danger: true, reason: true, verb: discard ? 'Discard' : 'Release', typed: discard ? 'discard' : 'release',
    body: html`<p>${discard ? 'Held jobs that are due are deleted. The others run when they are due.' : 'Held jobs are enqueued when they are due. Jobs that ran before the gap may run again.'}</p>` });
  if (!yes) return;
  try {
    await ask(apiPath('release'), { method: 'POST', body: discard ? { discard: true, reason: yes.reason } : { reason: yes.reason } });
    toast(discard ? 'Due jobs discarded' : 'Held jobs released');
  } catch (e) {
    failed(e);
  }
  setTimeout(refreshOverview, 500);
}

export default function Health() {
  const state = useChecks();
  const o = overview.value;
  const s = o?.scheduler;
  const held = Object.entries(o?.journal?.held || {});
  const columns = [{ id: 'stream', label: 'Stream', always: true, head: true, cell: (/** @type {any} */ r) => r.stream }, { id: 'position', label: 'Read to offset', right: true, cell: (/** @type {any} */ r) => (r.position < 0 ? html`<span class="dim">none</span>` : count(r.position)) }, { id: 'lag', label: 'Behind', right: true, cell: (/** @type {any} */ r) => seconds(r.lag_seconds) },
    { id: 'state', label: 'State', cell: (/** @type {any} */ r) => html`<${State} state=${r.fault ? 'failed' : r.caught_up ? 'ok' : 'warning'} text=${r.fault || (r.recreated ? 'recreated' : r.caught_up ? 'caught up' : 'catching up')} />` }];
  return html`<${Title} title="Health"><${CopyCurl} url=${apiPath('overview')} /><//>
    <div class="grid"><${Card} title="Checks" class="c6"><ul class="att">${checks.map(([name, text]) => { const c = state[name]; return html`<li key=${name}><div class="grow"><div>${text}</div>${c && !c.ok && html`<div class="bad small anywhere">${c.reason}</div>`}</div>${c ? html`<${State} state=${c.ok ? 'ok' : 'failed'} />` : html`<span class="dim">…</span>`}</li>`; })}</ul><//>
      <${Card} title="Broker and leader" class="c6">${o && html`<dl class="facts"><dt>Broker</dt><dd>${o.broker.product} ${o.broker.version} ${o.broker.connected ? '' : html`<span class="bad">not connected</span>`}</dd><dt>Virtual host</dt><dd>${o.vhost}</dd><dt>Leader</dt><dd class="anywhere">${o.leader.epoch < 0 ? html`<span class="bad">none</span>` : o.leader.identity}</dd>
        <dt>Leader since</dt><dd><${Time} at=${o.leader.since} /> <span class="dim">epoch ${count(o.leader.epoch)}</span></dd><dt>Role</dt><dd>${s.leader ? 'leader' : 'standby'}${s.phase !== 'leading' && html` <span class="dim">(${s.phase})</span>`}</dd><dt>Last scheduling delay</dt><dd>${seconds(s.last_late / 1e9)}</dd><dt>Unconfirmed</dt><dd>${count(s.unconfirmed)}</dd>
        <dt>Clock skew</dt><dd>${Math.abs(skew.value) < 1 ? 'none' : seconds(Math.abs(skew.value)) + (skew.value > 0 ? ' ahead of' : ' behind') + ' this computer'}</dd>${s.last_error && html`<dt>Last error</dt><dd class="bad">${s.last_error}</dd>`}</dl>`}<//>
      ${held.length > 0 && html`<${Card} title="Held after a gap in the journal"><p>Due jobs up to these offsets are held, because the journal no longer says whether they ran: ${held.map(([k, v]) => `${k} ${count(/** @type {number} */ (v))}`).join(', ')}.</p>
        ${mayAdminister.value ? html`<div class="row" style=${{ marginTop: '1rem' }}><button class="btn hold" onClick=${() => release(false)}>Release …</button><button class="btn hurt" onClick=${() => release(true)}>Discard …</button></div>` : html`<p class="dim">You need the tag administrator to release or discard them.</p>`}<//>`}
      ${s?.held?.length > 0 && html`<${Card} title="Queues that accept no jobs"><ul class="att">${s.held.map((h) => html`<li><div class="grow"><span class="strong">${h.queue}</span><div class="dim small">${h.reason}</div></div><${State} state="held" /></li>`)}</ul><//>`}
      <${Card} flush title="Streams"><${Table} id="streams" caption="Streams" columns=${columns} rows=${o?.views?.streams || []} loading=${!o} rowKey=${(/** @type {any} */ r) => r.stream} still=${false} empty=${html`<${Empty} title="No streams" />`} /><//>
      <${Card} title="Since start" class="c6">${s && html`<dl class="facts">${Object.entries(s.counters).map(([k, v]) => html`<dt>${meanings[k]?.[0] || k.replaceAll('_', ' ')}</dt><dd><span class="num">${count(/** @type {number} */ (v))}</span> <span class="dim small">${meanings[k]?.[1]}</span></dd>`)}</dl>`}<//>
      <${Card} title="Versions" class="c6">${o && html`<dl class="facts"><dt>Millrace</dt><dd>${o.product_version}</dd><dt>Processed today</dt><dd>${count(o.jobs.processed_today)}</dd><dt>Failed today</dt><dd>${count(o.jobs.failed_today)}</dd><dt>Processed, all time</dt><dd>${count(o.jobs.processed)}</dd><dt>Rejected records</dt><dd>${count(Object.values(o.rejected).reduce((n, /** @type {any} */ r) => n + r.ever, 0))} in total</dd></dl>`}<//></div>`;
}
