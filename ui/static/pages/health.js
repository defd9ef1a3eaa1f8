// @ts-check
import { html, useEffect, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { skew } from '../core/clock.js';
import { count, plural, seconds } from '../core/format.js';
import { overview, refreshOverview } from '../core/overview.js';
import { mayAdminister } from '../core/session.js';
import { confirm } from '../parts/dialog.js';
import { Card, CopyCurl, Empty, State, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed, toast } from '../parts/toast.js';

/** @type {[string, string][]} */
const checks = [['broker-connection', 'The broker is reached'], ['alarms', 'The broker takes messages'], ['views-caught-up', 'All streams have been read'], ['leader', 'A sidecar leads and answers'], ['workers', 'A worker process takes jobs']];

/** A check that fails answers 503: that is its answer, and none of the page's failures. */
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
  const yes = await confirm({ title: discard ? 'Discard what is held and due?' : 'Let everything fire that is held?', danger: true, reason: true, verb: discard ? 'Discard it' : 'Let it fire', typed: discard ? 'discard' : 'release',
    body: html`<p>${discard ? 'What is held and due is deleted, the rest fires in its time.' : 'What was done before the gap may be done once more: jobs may run twice.'}</p>` });
  if (!yes) return;
  try {
    await ask(apiPath('release'), { method: 'POST', body: discard ? { discard: true, reason: yes.reason } : { reason: yes.reason } });
    toast('Released');
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
  const columns = [{ id: 'stream', label: 'Stream', always: true, head: true, cell: (/** @type {any} */ r) => r.stream }, { id: 'position', label: 'Read to offset', right: true, cell: (/** @type {any} */ r) => (r.position < 0 ? html`<span class="dim">nothing yet</span>` : count(r.position)) }, { id: 'lag', label: 'Behind', right: true, cell: (/** @type {any} */ r) => seconds(r.lag_seconds) },
    { id: 'state', label: 'State', cell: (/** @type {any} */ r) => html`<${State} state=${r.fault ? 'failed' : r.caught_up ? 'ok' : 'warning'} text=${r.fault || (r.recreated ? 'made anew' : r.caught_up ? 'caught up' : 'catching up')} />` }];
  return html`<${Title} title="Health"><${CopyCurl} url=${apiPath('overview')} /><//>
    <div class="grid"><${Card} title="Checks" class="c6"><ul class="att">${checks.map(([name, text]) => { const c = state[name]; return html`<li key=${name}><div class="grow"><div>${text}</div>${c && !c.ok && html`<div class="bad small anywhere">${c.reason}</div>`}</div>${c ? html`<${State} state=${c.ok ? 'ok' : 'failed'} />` : html`<span class="dim">…</span>`}</li>`; })}</ul><//>
      <${Card} title="Broker and leader" class="c6">${o && html`<dl class="facts"><dt>Broker</dt><dd>${o.broker.product} ${o.broker.version} ${o.broker.connected ? '' : html`<span class="bad">not connected</span>`}</dd><dt>Virtual host</dt><dd>${o.vhost}</dd><dt>Leader</dt><dd class="anywhere">${o.leader.epoch < 0 ? html`<span class="bad">none yet</span>` : o.leader.identity}</dd>
        <dt>Leads since</dt><dd><${Time} at=${o.leader.since} /> <span class="dim">epoch ${count(o.leader.epoch)}</span></dd><dt>This sidecar</dt><dd>${s.leader ? 'leads' : 'stands by'}${s.phase !== 'leading' && html` <span class="dim">(${s.phase})</span>`}</dd><dt>Late by</dt><dd>${seconds(s.last_late / 1e9)} <span class="dim">at the last fire</span></dd><dt>Unconfirmed</dt><dd>${count(s.unconfirmed)}</dd>
        <dt>Its clock</dt><dd>${Math.abs(skew.value) < 1 ? 'as this computer’s' : seconds(Math.abs(skew.value)) + (skew.value > 0 ? ' ahead of' : ' behind') + ' this computer’s'}</dd>${s.last_error && html`<dt>Last error</dt><dd class="bad">${s.last_error}</dd>`}</dl>`}<//>
      ${held.length > 0 && html`<${Card} title="Held after a gap in the journal"><p>Due jobs up to these offsets are held, since what was done to them is not known: ${held.map(([k, v]) => `${k} ${count(/** @type {number} */ (v))}`).join(', ')}.</p>
        ${mayAdminister.value ? html`<div class="row" style=${{ marginTop: '1rem' }}><button class="btn hold" onClick=${() => release(false)}>Let fire …</button><button class="btn hurt" onClick=${() => release(true)}>Discard …</button></div>` : html`<p class="dim">To decide needs the tag administrator.</p>`}<//>`}
      ${s?.held?.length > 0 && html`<${Card} title="Queues that take nothing"><ul class="att">${s.held.map((h) => html`<li><div class="grow"><span class="strong">${h.queue}</span><div class="dim small">${h.reason}</div></div><${State} state="held" /></li>`)}</ul><//>`}
      <${Card} flush title="Streams"><${Table} id="streams" caption="Streams" columns=${columns} rows=${o?.views?.streams || []} loading=${!o} rowKey=${(/** @type {any} */ r) => r.stream} still=${false} empty=${html`<${Empty} title="No streams" />`} /><//>
      <${Card} title="Done since this process started" class="c6">${s && html`<dl class="facts">${Object.entries(s.counters).map(([k, v]) => html`<dt>${k.replaceAll('_', ' ')}</dt><dd class="num">${count(/** @type {number} */ (v))}</dd>`)}</dl>`}<//>
      <${Card} title="Versions" class="c6">${o && html`<dl class="facts"><dt>Millrace</dt><dd>${o.product_version}</dd><dt>Jobs done today</dt><dd>${count(o.jobs.processed_today)}</dd><dt>Failed today</dt><dd>${count(o.jobs.failed_today)}</dd><dt>Done in all</dt><dd>${count(o.jobs.processed)}</dd><dt>Rejected records</dt><dd>${plural(Object.values(o.rejected).reduce((n, /** @type {any} */ r) => n + r.ever, 0), 'record')} ever</dd></dl>`}<//></div>`;
}
