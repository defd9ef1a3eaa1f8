// @ts-check
// The dashboard below the first screen: the most frequent failures, and the newest bulk operations.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { brief, short } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { opText, ownState, Progress } from './ops.js';
import { Card, Failure, State } from './states.js';
import { Time } from './time.js';
import { common, dashboard as words } from '../core/words.js';

export function Lower() {
  const ops = useResource(apiPath('operations'), { topic: 'operations', every: 10_000 });
  const any = !!ops.error || ops.data?.length > 0;
  return html`<${TopErrors} class=${any ? 'c6 low' : ''} />${any && html`<${Recent} ops=${ops} class="c6 low" />`}`;
}

/** @param {{class: string}} p */
function TopErrors({ class: extra }) {
  const errors = useResource(apiPath('errors'), { every: 15_000 });
  const top = (errors.data?.items || []).slice(0, 8);
  return html`<${Card} title=${words.topErrors} class=${extra} tools=${html`<a class="btn small" href=${link('retries', [], { view: 'storm' })}>${words.allErrors}</a>`}>
    <${Failure} error=${errors.error} refresh=${errors.refresh} />
    ${top.length ? html`<ul class="att">${top.map((g) => html`<${TopError} key=${g.fingerprint} g=${g} />`)}</ul>` : errors.data && html`<p class="dim">${words.noErrors}</p>`}<//>`;
}

/** @param {{g: any}} p */
function TopError({ g }) {
  const to = (/** @type {string} */ set) => link(set, [], { error: g.fingerprint });
  const retries = g.retries > 0 && html`<a class="dim" href=${to('retries')}>${common.retriesOf(g.retries)}</a>`;
  const dead = g.dead > 0 && html`<a class="dim" href=${to('dead-jobs')}>${common.deadOf(g.dead)}</a>`;
  return html`<li><span class="num strong first">${brief(g.count)}</span>
    <div class="grow">
      <div class="cut"><a class="bad" href=${to(g.retries ? 'retries' : 'dead-jobs')}>${g.error_class || common.error}</a> <span class="dim">${words.inClass(g.class)}</span></div>
      <div class="cut dim small" title=${g.message}>${short(g.example ?? g.message)}</div></div>
    <span class="small nowrap">${retries}${retries && dead && ' · '}${dead}</span></li>`;
}

/** @param {{ops: any, class: string}} p */
function Recent({ ops, class: extra }) {
  const top = (ops.data || []).slice(0, 6);
  return html`<${Card} title=${common.operations} class=${extra} tools=${html`<a class="btn small" href=${link('operations')}>${common.allOperations}</a>`}>
    <${Failure} error=${ops.error} refresh=${ops.refresh} />
    <ul class="att">${top.map((op) => html`<${Operation} key=${op.id} op=${op} />`)}</ul><//>`;
}

/** @param {{op: any}} p */
const Operation = ({ op }) => html`<li>
  <div class="grow"><span class="strong">${opText(op)}</span> <span class="dim small">${op.actor ? words.by(op.actor) : ''}</span>
    ${op.state === 'running' && html`<${Progress} op=${op} />`}</div>
  <${State} state=${ownState(op)} /><span class="small dim"><${Time} at=${op.started_at} /></span></li>`;
