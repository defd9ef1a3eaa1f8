// @ts-check
// What needs a look, the gravest first, and where to go.
import { html, signal } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { clock } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { Icon } from './icon.js';
import { Card, Failure } from './states.js';

const queue = (/** @type {any} */ i) => [link('job-queues', i.subject), i.subject];
const to = {
  queue_down: queue, no_consumer: queue, saturated: queue, oldest_too_old: queue, queue_growing: queue, queue_paused: queue,
  process_lost: (/** @type {any} */ i) => [link('worker-processes', i.subject), i.subject], job_stuck: (/** @type {any} */ i) => [link('jobs', i.subject), i.subject], retry_storm: () => [link('retries', [], { view: 'storm' }), 'Retries by error'], dead_growth: () => [link('dead-jobs', [], { view: 'storm' }), 'Dead jobs by error'],
  schedule_overdue: () => [link('scheduled-jobs'), 'Scheduled jobs'], view_lag: () => [link('health'), 'Health'], degraded: (/** @type {any} */ i) => [link('health'), i.subject], broker_alarm: () => [link('health'), 'Health'], no_leader: () => [link('health'), 'Health'], version_skew: (/** @type {any} */ i) => [link('worker-processes'), i.subject || 'Processes'],
};
/** Since when nothing has needed a look, as far as this page knows. */
const clear = signal(0);

/** What needs a look, as the API has it. */
export const useAttention = () => useResource(apiPath('attention'), { topic: 'overview', every: 10_000 });

/** @param {{of: any, class?: string}} p of: what useAttention gives */
export function Attention({ of: a, class: extra }) {
  const items = a.data?.items || [];
  if (a.data && items.length) clear.value = 0;
  else if (a.data && !clear.value) clear.value = a.data.now;
  return html`<${Card} title="Needs a look" class=${extra} tools=${items.length > 0 && html`<span class=${'pill ' + (items.some((/** @type {any} */ i) => i.severity === 'critical') ? 'bad' : 'warn')}>${items.length}</span>`}>
    <${Failure} error=${a.error} refresh=${a.refresh} />
    ${items.length ? html`<ul class="att">${items.slice(0, 8).map((/** @type {any} */ i) => { const [at, text] = to[i.kind]?.(i) || [null, i.subject]; return html`<li key=${i.kind + i.subject}><${Icon} name=${i.severity === 'critical' ? 'alert' : 'warn'} class=${i.severity === 'critical' ? 'bad' : 'warn'} label=${i.severity} />
      <div class="grow anywhere">${at ? html`<a href=${at}>${text}</a>` : html`<span class="strong">${text}</span>`}<div class="dim small">${i.text}</div></div></li>`; })}</ul>${items.length > 8 && html`<p class="dim small">and ${items.length - 8} more</p>`}`
    : a.data && html`<div class="empty" style=${{ padding: '1.5rem 0' }}><${Icon} name="check" class="ok" /><p class="lead">All clear</p><p>Nothing needed a look since ${clock(clear.value)}.</p></div>`}<//>`;
}
