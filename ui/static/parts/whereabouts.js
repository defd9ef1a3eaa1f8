// @ts-check
// Where a job is that waits in no set: with a worker, leased, in its queue, or gone.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { millis, plural, seconds } from '../core/format.js';
import { now } from '../core/clock.js';
import { useAll } from '../core/resource.js';
import { link } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { sent, storyOf } from '../core/story.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { PausedBy } from './queues.js';
import { Card, Empty } from './states.js';
import { Since, Time } from './time.js';
import { failed, toast } from './toast.js';
import { Usual } from './usual.js';

/** @param {{d: any, seen?: string}} p d: what the API knows of it; seen: the queue that an entry named */
export function Whereabouts({ d, seen }) {
  const last = storyOf(d).filter((f) => f.what !== 'made').at(-1);
  const queue = seen || d.leases?.[0].queue || d.runs?.[0]?.queue || d.job?.queue;
  const waits = !d.leases && last && !last.run && sent.includes(last.what);
  // Among all of them: one that was made for this job is not listed at once, and to ask for it alone would fail until then.
  const queues = useAll(waits && queue ? 'job-queues' : null, { topic: 'queues' });
  const q = queues.data?.find((/** @type {any} */ one) => one.name === queue);
  return html`<section class="card" aria-label="Where it is">${d.leases ? d.leases.map((/** @type {any} */ l) => html`<${Leased} key=${l.id} l=${l} />`)
    : waits ? html`<${Empty} icon="queue" title="In its queue, or being worked on"><p>It was sent to ${queue ? html`<${ToQueue} name=${queue} />` : 'its queue'} <${Time} at=${last.at} />, and no worker has reported a run since.</p>${q && html`<${Why} q=${q} />`}<//>`
    : html`<${Empty} icon="check" title=${last?.run ? 'Finished' : 'Not queued'}><p>${last ? html`${last.text} <${Time} at=${last.at} />.` : 'Nothing more is known.'}</p><//>`}</section>`;
}

/** @param {{name: string}} p */
const ToQueue = ({ name }) => html`<a class="strong" href=${link('job-queues', name)}>${name}</a>`;

/** A process that says that it runs the job. @param {{w: any, jid: string}} p */
export function Running({ w, jid }) {
  const lost = w.state === 'lost';
  const cancel = mayAct.value && !lost && html`<button class="btn small hurt" onClick=${() => cancelRun(jid, w)}><${Icon} name="x" small />Cancel job</button>`;
  return html`<${Card} title="Running" tools=${cancel}>
    ${lost && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>The process has not been heard for a minute: it may be gone, and the job with it.</span></div>`}
    ${w.stuck && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>It has run for much longer than usual. If it hangs, cancel it, or <a href=${link('worker-processes', w.identity)}>stop its process</a>.</span></div>`}
    <dl class="facts"><dt>Class</dt><dd><a href=${link('job-metrics', w.class || '-')}>${w.class || '–'}</a></dd><dt>Queue</dt><dd><${ToQueue} name=${w.queue} /></dd>
      <dt>Process</dt><dd><a href=${link('worker-processes', w.identity)}>${w.identity}</a></dd>
      <dt>Started</dt><dd>${w.started_at ? html`<${Time} at=${w.started_at} />` : 'the process does not say'}</dd>
      <dt>Running for</dt><dd><span class="row wrap"><${Since} since=${w.started_at} /><${Usual} w=${w} /></span></dd>
      <dt>Usually</dt><dd>${w.usual_ms === null ? 'not known yet' : `up to ${millis(w.usual_ms)} (p95 of 7 days)`}</dd><dt>Reported</dt><dd><${Time} at=${w.heard_at} /></dd></dl><//>`;
}

/** @param {string} jid @param {any} w */
async function cancelRun(jid, w) {
  if (whyNot.value) {
    toast(whyNot.value, { bad: true });
    return;
  }
  const yes = await confirm({
    title: `Cancel ${w.class || 'this job'}?`, verb: 'Cancel job', danger: true, reason: true,
    facts: [['Job', jid], ['Process', w.identity], ['Running for', w.started_at && seconds(now.value - w.started_at)]],
    body: html`<p>The worker sets the job's cancel signal. A handler that watches it ends, and the job is discarded: it is not retried and not kept. A handler that does not watch it runs on.</p>`,
  });
  if (!yes) return;
  try {
    await ask(apiPath('jobs', [jid, 'cancel']), { method: 'POST', reason: yes.reason });
    toast('Cancel requested: the job ends if its handler watches for it');
  } catch (e) {
    failed(e);
  }
}

/** @param {{l: any}} p */
const Leased = ({ l }) => html`<${Empty} icon="clock" title="Leased"><p>A worker has attempt ${l.attempt} over HTTP, until <${Time} at=${l.until} /> at the latest: it goes back to <${ToQueue} name=${l.queue} /> if it is not settled by then.</p><//>`;

/** Why it may wait. @param {{q: any}} p */
function Why({ q }) {
  if (q.paused) return html`<p class="warn strong">The queue is paused <${PausedBy} pause=${q.paused} /></p>`;
  if (q.state === 'paused') return html`<p class="warn strong">The queue is paused.</p>`;
  if (q.consumers === 0) return html`<p class="bad strong">No workers consume the queue. Start one.</p>`;
  if (q.state === 'saturated') return html`<p class="bad strong">All slots of its workers are busy, and no job has been taken for a while.</p>`;
  return html`<p>${q.ready ? `${plural(q.ready, 'job waits', 'jobs wait')} there.` : 'No job waits there now.'}</p>`;
}
