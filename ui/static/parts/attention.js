// @ts-check
// The problems that need attention, the most severe first, with links.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { link, route } from '../core/router.js';
import { Icon } from './icon.js';
import { Card, Failure } from './states.js';
import { Time } from './time.js';
import { common, attention as words } from '../core/words.js';

const queue = (i) => [link('job-queues', i.subject), '', words.ofQueue(i.subject, i.text)];
const periodic = (i) => [link('periodic-jobs', i.subject), '', words.ofPeriodic(i.subject, i.text)];
const limit = (i) => [link('limits', i.subject), '', words.ofLimit(i.subject, i.text)];
const governed = (i) => [link('governed-queues', i.subject), '', words.ofQueue(i.subject, i.text)];
const health = () => [link('health'), common.health];
/**
 * For each kind of problem: the link, the text below the headline, and the headline if it is not
 * the API's text.
 * @type {Record<string, (i: any) => string[]>}
 */
const to = {
  queue_down: queue, no_consumer: queue, saturated: queue, oldest_too_old: queue, queue_growing: queue, queue_paused: queue,
  process_lost: (i) => [link('worker-processes', i.subject), '', words.ofProcess(i.subject, i.text)],
  job_stuck: (i) => [link('jobs', i.subject), i.subject],
  retry_storm: () => [link('retries', [], { view: 'storm' }), common.retriesByError],
  dead_growth: () => [link('dead-jobs', [], { view: 'storm' }), words.deadJobsByError],
  schedule_overdue: () => [link('scheduled-jobs'), common.scheduledJobs],
  degraded: (i) => [link('health'), i.subject],
  ticks_missed: periodic, ticks_late: periodic, periodic_incomplete: periodic,
  limit_stalled: limit, limit_incomplete: limit,
  slots_freed: () => [link('operations', [], { tab: 'audit', op: 'freed' }), words.freedSlots],
  queue_full: governed, queue_suspended: governed, queue_bypassed: governed, queue_draining: governed, unique_undecided: health,
  view_lag: health, broker_alarm: health, broker_disconnected: health, no_leader: health,
  no_workers: () => [link('worker-processes'), common.workerProcesses],
  version_skew: (i) => (i.subject ? [link('worker-processes'), '', words.ofTag(i.subject, i.text)] : [link('worker-processes'), common.processes]),
};

/** How many are shown. The others are shown on request. */
const most = 8;

/** Returns the problems, as the API has them. */
export const useAttention = () => useResource(apiPath('attention'), { topic: 'overview', every: 10_000 });

/** @param {{of: any}} p `of`: the result of useAttention */
export function Attention({ of: a }) {
  const items = a.data?.items || [];
  const { query } = route.value;
  const shown = query.get('attention') === 'all' ? items : items.slice(0, most);
  const all = new URLSearchParams(query);
  all.set('attention', 'all');
  const number = items.length > 0 && html`<span class=${'pill ' + (items.some(critical) ? 'bad' : 'warn')}>${items.length}</span>`;
  return html`<${Card} title=${words.needsAttention} class="problems" tools=${number}>
    <${Failure} error=${a.error} refresh=${a.refresh} />
    ${items.length ? html`<ul class="att">${shown.map((i) => html`<${Problem} key=${i.kind + i.subject} i=${i} />`)}</ul>
      ${items.length > shown.length && html`<a class="small" href=${link('dashboard', [], all)}>${words.more(items.length - shown.length)}</a>`}`
    : a.data && !a.error && html`<p class="row"><${Icon} name="check" class="ok" /><span class="strong">${words.noIssues}</span>
      <span class="dim">${words.checked(html`<${Time} at=${a.data.now} past />`)}</span></p>`}<//>`;
}

/** @param {any} i */
const critical = (i) => i.severity === 'critical';

/** @param {{i: any}} p */
function Problem({ i }) {
  const [at, text, headline = i.text] = to[i.kind]?.(i) || ['', i.subject];
  return html`<li><${Icon} name=${critical(i) ? 'alert' : 'warn'} class=${critical(i) ? 'bad' : 'warn'} label=${i.severity} />
    <${at ? 'a' : 'div'} class="grow" href=${at || undefined}><div class="strong anywhere">${sentence(headline)}</div>
      ${text && html`<div class="cut dim small">${text}</div>`}<//></li>`;
}

/**
 * Returns the headline, which is the problem. Its place is in the text below.
 * @param {string} text
 */
const sentence = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
