// @ts-check
import { html, useEffect, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { skew } from '../core/clock.js';
import { count, seconds } from '../core/format.js';
import { overview, refreshOverview } from '../core/overview.js';
import { mayAdminister } from '../core/session.js';
import { common } from '../core/words.js';
import { health as words } from '../core/pagewords.js';
import { confirm } from '../parts/dialog.js';
import { Card, CopyCurl, Empty, State, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';
import { failed, toast } from '../parts/toast.js';

/** @type {[string, string][]} */
const checks = [
  ['broker-connection', words.brokerReachable], ['alarms', words.brokerAcceptsMessages], ['views-caught-up', words.streamsCaughtUp],
  ['leader', words.leaderResponding], ['workers', words.workersAvailable],
];

/**
 * The counters of the leader and of the standby: the name, and what is counted.
 * @type {Record<string, [string, string]>}
 */
const meanings = {
  epochs: [words.leaderTerms, words.leaderTermsAre], fired: [words.dispatched, words.dispatchedAre],
  returned: [words.returned, words.returnedAre], refused: [words.refused, words.refusedAre],
  dead_lettered: [words.deadLettered, words.deadLetteredAre], commands: [common.actions, words.actionsAre],
  lost_connections: [words.lostConnections, words.lostConnectionsAre],
};

/** A failed check answers 503, which is its result and not an error of the page. */
function useChecks() {
  const [state, set] = useState(/** @type {Record<string, {ok: boolean, reason: string}>} */ ({}));
  useEffect(() => {
    let ended = false;
    const check = async (/** @type {string} */ name) => {
      const r = await ask(apiPath('health/checks', name)).then(() => ({ ok: true, reason: '' }), (e) => ({ ok: false, reason: e.reason }));
      if (!ended) set((s) => ({ ...s, [name]: r }));
    };
    const load = () => checks.forEach(([name]) => check(name));
    load();
    const timer = setInterval(() => { if (!document.hidden) load(); }, 10_000);
    return () => { ended = true; clearInterval(timer); };
  }, []);
  return state;
}

/** @param {boolean} discard */
async function release(discard) {
  const yes = await confirm({
    title: discard ? words.askDiscard : words.askRelease, danger: true, reason: true, verb: discard ? words.discard : words.release,
    typed: discard ? words.typeDiscard : words.typeRelease, body: html`<p>${discard ? words.aboutDiscarding : words.aboutReleasing}</p>`,
  });
  if (!yes) return;
  try {
    await ask(apiPath('release'), { method: 'POST', body: discard ? { discard: true, reason: yes.reason } : { reason: yes.reason } });
    toast(discard ? words.dueJobsDiscarded : words.heldJobsReleased);
  } catch (e) {
    failed(e);
  }
  setTimeout(refreshOverview, 500);
}

/**
 * Returns how far a stream has been read.
 * @param {any} r
 * @returns {[string, string]} a state, and its text
 */
function stateOf(r) {
  if (r.fault) return ['failed', r.fault];
  return [r.caught_up ? 'ok' : 'warning', r.recreated ? words.recreated : r.caught_up ? words.caughtUp : common.catchingUp];
}

const columns = [
  { id: 'stream', label: common.stream, always: true, head: true, cell: (r) => r.stream },
  {
    id: 'position', label: words.readToOffset, right: true,
    cell: (r) => (r.position < 0 ? html`<span class="dim">${words.none}</span>` : count(r.position)),
  },
  { id: 'lag', label: words.lag, right: true, cell: (r) => seconds(r.lag_seconds) },
  { id: 'state', label: common.state, cell: (r) => { const [state, text] = stateOf(r); return html`<${State} state=${state} text=${text} />`; } },
];

export default function Health() {
  const state = useChecks();
  const o = overview.value;
  const s = o?.scheduler;
  const held = Object.entries(o?.journal?.held || {});
  return html`<${Title} title=${common.health}><${CopyCurl} url=${apiPath('overview')} /><//>
    <div class="grid"><${Card} title=${words.checks} class="c6">
        <ul class="att">${checks.map(([name, text]) => html`<${Check} key=${name} text=${text} c=${state[name]} />`)}</ul><//>
      <${Card} title=${words.brokerAndLeader} class="c6">${o && html`<${Leader} o=${o} />`}<//>
      ${held.length > 0 && html`<${Held} held=${held} />`}
      ${s?.held?.length > 0 && html`<${Card} title=${words.queuesThatAcceptNoJobs}><ul class="att">${s.held.map((h) => html`<${HeldQueue} h=${h} />`)}</ul><//>`}
      <${Card} flush title=${words.streams}><${Table} id="streams" caption=${words.streams} columns=${columns} rows=${o?.views?.streams || []} loading=${!o}
        rowKey=${(r) => r.stream} still=${false} empty=${html`<${Empty} title=${words.noStreams} />`} /><//>
      <${Card} title=${words.sinceStart} class="c6">${s && html`<dl class="facts">${Object.entries(s.counters).map(counter)}</dl>`}<//>
      <${Card} title=${words.versions} class="c6">${o && html`<${Versions} o=${o} />`}<//></div>`;
}

/**
 * @param {{text: string, c?: {ok: boolean, reason: string}}} p `c`: the result, once it is known
 */
const Check = ({ text, c }) => html`<li><div class="grow"><div>${text}</div>${c && !c.ok && html`<div class="bad small anywhere">${c.reason}</div>`}</div>
  ${c ? html`<${State} state=${c.ok ? 'ok' : 'failed'} />` : html`<span class="dim">…</span>`}</li>`;

/** @param {{o: any}} p */
function Leader({ o }) {
  const s = o.scheduler;
  return html`<dl class="facts">
    <dt>${words.broker}</dt><dd>${o.broker.product} ${o.broker.version} ${o.broker.connected ? '' : html`<span class="bad">${words.notConnected}</span>`}</dd>
    <dt>${words.virtualHost}</dt><dd>${o.vhost}</dd>
    <dt>${words.leader}</dt><dd class="anywhere">${o.leader.epoch < 0 ? html`<span class="bad">${words.none}</span>` : o.leader.identity}</dd>
    <dt>${words.leaderSince}</dt><dd><${Time} at=${o.leader.since} /> <span class="dim">${words.epoch(o.leader.epoch)}</span></dd>
    <dt>${words.role}</dt><dd>${s.leader ? words.leaderInline : words.standby}
      ${s.phase !== 'leading' && html` <span class="dim">${words.phase(words.phases[s.phase] || s.phase)}</span>`}</dd>
    <dt>${words.lastSchedulingDelay}</dt><dd>${seconds(s.last_late / 1e9)}</dd>
    <dt>${words.unconfirmed}</dt><dd>${count(s.unconfirmed)}</dd>
    <dt>${words.clockSkew}</dt><dd>${words.skewIs(skew.value)}</dd>
    ${s.last_error && html`<dt>${words.lastError}</dt><dd class="bad">${s.last_error}</dd>`}</dl>`;
}

/** Jobs that are held after a gap in the journal. @param {{held: [string, any][]}} p */
function Held({ held }) {
  const offsets = held.map(([stream, offset]) => `${stream} ${count(offset)}`).join(', ');
  return html`<${Card} title=${words.heldAfterAGap}><p>${words.aboutHeld(offsets)}</p>
    ${mayAdminister.value ? html`<div class="row below"><button class="btn hold" onClick=${() => release(false)}>${words.releaseButton}</button>
      <button class="btn hurt" onClick=${() => release(true)}>${words.discardButton}</button></div>` : html`<p class="dim">${words.needsAdministrator}</p>`}<//>`;
}

/** @param {{h: any}} p */
const HeldQueue = ({ h }) => html`<li><div class="grow"><span class="strong">${h.queue}</span><div class="dim small">${h.reason}</div></div><${State} state="held" /></li>`;

/** @param {[string, any]} of */
const counter = ([name, n]) => html`<dt>${meanings[name]?.[0] || name.replaceAll('_', ' ')}</dt>
  <dd><span class="num">${count(n)}</span> <span class="dim small">${meanings[name]?.[1]}</span></dd>`;

/** @param {{o: any}} p */
const Versions = ({ o }) => html`<dl class="facts"><dt>${common.millrace}</dt><dd>${o.product_version}</dd>
  <dt>${words.processedToday}</dt><dd>${count(o.jobs.processed_today)}</dd>
  <dt>${words.failedToday}</dt><dd>${count(o.jobs.failed_today)}</dd>
  <dt>${words.processedAllTime}</dt><dd>${count(o.jobs.processed)}</dd>
  <dt>${common.rejectedRecords}</dt><dd>${words.inTotal(Object.values(o.rejected).reduce((n, r) => n + r.ever, 0))}</dd></dl>`;
