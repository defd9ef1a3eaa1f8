// @ts-check
// What needs attention, the most severe first, and where to go.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { Icon } from './icon.js';
import { Card, Failure } from './states.js';
import { Time } from './time.js';
import { common, attention as words } from '../core/words.js';

const queue = (/** @type {any} */ i) => [link('job-queues', i.subject), i.subject];
const to = {
  queue_down: queue, no_consumer: queue, saturated: queue, oldest_too_old: queue, queue_growing: queue, queue_paused: queue,
  process_lost: (/** @type {any} */ i) => [link('worker-processes', i.subject), i.subject], job_stuck: (/** @type {any} */ i) => [link('jobs', i.subject), i.subject], retry_storm: () => [link('retries', [], { view: 'storm' }), common.retriesByError], dead_growth: () => [link('dead-jobs', [], { view: 'storm' }), words.deadJobsByError],
  schedule_overdue: () => [link('scheduled-jobs'), common.scheduledJobs], view_lag: () => [link('health'), common.health], degraded: (/** @type {any} */ i) => [link('health'), i.subject], broker_alarm: () => [link('health'), common.health], broker_disconnected: () => [link('health'), common.health], no_leader: () => [link('health'), common.health], no_workers: () => [link('worker-processes'), common.workerProcesses], version_skew: (/** @type {any} */ i) => [link('worker-processes'), i.subject || common.processes],
};

/** What needs attention, as the API has it. */
export const useAttention = () => useResource(apiPath('attention'), { topic: 'overview', every: 10_000 });

/** @param {{of: any, class?: string}} p of: what useAttention gives */
export function Attention({ of: a, class: extra }) {
  const items = a.data?.items || [];
  return html`<${Card} title=${words.needsAttention} class=${extra} tools=${items.length > 0 && html`<span class=${'pill ' + (items.some((/** @type {any} */ i) => i.severity === 'critical') ? 'bad' : 'warn')}>${items.length}</span>`}>
    <${Failure} error=${a.error} refresh=${a.refresh} />
    ${items.length ? html`<ul class="att">${items.slice(0, 8).map((/** @type {any} */ i) => { const [at, text] = to[i.kind]?.(i) || [null, i.subject]; return html`<li key=${i.kind + i.subject}><${Icon} name=${i.severity === 'critical' ? 'alert' : 'warn'} class=${i.severity === 'critical' ? 'bad' : 'warn'} label=${i.severity} />
      <${at ? 'a' : 'div'} class="grow" href=${at}><div class="strong anywhere">${sentence(i.text)}</div><div class="cut dim small">${text}</div><//></li>`; })}</ul>${items.length > 8 && html`<p class="dim small">${words.more(items.length - 8)}</p>`}`
    : a.data && !a.error && html`<div class="empty" style=${{ padding: '1.5rem 0' }}><${Icon} name="check" class="ok" /><p class="lead">${words.noIssues}</p><p>${words.checked(html`<${Time} at=${a.data.now} past />`)}</p></div>`}<//>`;
}

/** What is wrong is the headline; where comes below. @param {string} text */
const sentence = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
