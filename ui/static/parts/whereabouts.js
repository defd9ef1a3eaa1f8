// @ts-check
// Where a job is that waits in no set: with a worker, leased, in its queue, or gone.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { seconds } from '../core/format.js';
import { now } from '../core/clock.js';
import { useAll } from '../core/resource.js';
import { link } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { sent, storyOf } from '../core/story.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { PausedBy } from './queues.js';
import { Banner, Card, Empty } from './states.js';
import { Since, Time } from './time.js';
import { failed, toast } from './toast.js';
import { Usual } from './usual.js';
import { common, whereabouts as words } from '../core/words.js';

/**
 * @param {{d: any, seen?: string}} p `d`: the API's data about it; `seen`: the queue that an entry
 *   named
 */
export function Whereabouts({ d, seen }) {
  const last = storyOf(d).filter((f) => f.what !== 'made').at(-1);
  const queue = seen || d.leases?.[0].queue || d.runs?.[0]?.queue || d.job?.queue;
  const waits = !d.leases && last && !last.run && sent.includes(last.what);
  // All queues, because a queue that was made for this job is not listed immediately. Until then a
  // request for it alone would fail.
  const queues = useAll(waits && queue ? 'job-queues' : null, { topic: 'queues' });
  const q = queues.data?.find((one) => one.name === queue);
  const at = last && html`<${Time} at=${last.at} past />`;
  const where = queue ? html`<${ToQueue} name=${queue} />` : words.itsQueue;
  return html`<section class="card" aria-label=${words.location}>${d.leases ? d.leases.map((l) => html`<${Leased} key=${l.id} l=${l} />`)
    : waits ? html`<${Empty} icon="queue" title=${words.queuedOrRunning}><p>${words.sentTo(where, at)}</p>${q && html`<${Why} q=${q} />`}<//>`
    : html`<${Empty} icon="check" title=${last?.run ? words.finished : words.notQueued}>
      <p>${last ? words.lastly(last.text, at) : words.nothingMoreIsKnown}</p>${last?.run && html`<${OfRun} run=${d.runs[0]} />`}<//>`}</section>`;
}

/** @param {{name: string}} p */
const ToQueue = ({ name }) => html`<a class="strong" href=${link('job-queues', name)}>${name}</a>`;

/** @param {{run: any}} p */
function OfRun({ run }) {
  const cls = html`<a class="strong" href=${link('job-metrics', run.class || '-')}>${run.class || '–'}</a>`;
  return html`<p>${common.class} ${cls} · ${common.queue} <${ToQueue} name=${run.queue || 'default'} /></p>`;
}

/** A process that reports that it runs the job. @param {{w: any, jid: string}} p */
export function Running({ w, jid }) {
  const lost = w.state === 'lost';
  const cancel = mayAct.value && !lost && html`<button class="btn small hurt" onClick=${() => cancelRun(jid, w)}><${Icon} name="x" small />${words.cancelJob}</button>`;
  const stop = html`<a href=${link('worker-processes', w.identity)}>${words.stopItsProcess}</a>`;
  return html`<${Card} title=${common.running} tools=${cancel}>
    ${lost && html`<${Banner} look="bad" icon="alert">${words.processSilent}<//>`}
    ${w.stuck && html`<${Banner} look="bad" icon="alert">${words.aboutStuck(stop)}<//>`}
    <dl class="facts"><dt>${common.class}</dt><dd><a href=${link('job-metrics', w.class || '-')}>${w.class || '–'}</a></dd><dt>${common.queue}</dt><dd><${ToQueue} name=${w.queue} /></dd>
      <dt>${common.process}</dt><dd><a href=${link('worker-processes', w.identity)}>${w.identity}</a></dd>
      <dt>${common.started}</dt><dd>${w.started_at ? html`<${Time} at=${w.started_at} past />` : words.startNotReported}</dd>
      <dt>${common.runningFor}</dt><dd><span class="row wrap"><${Since} since=${w.started_at} /><${Usual} w=${w} /></span></dd>
      <dt>${words.usually}</dt><dd>${w.usual_ms === null ? words.notKnownYet : words.upTo(w.usual_ms)}</dd><dt>${words.reported}</dt><dd><${Time} at=${w.heard_at} past /></dd></dl><//>`;
}

/** @param {string} jid @param {any} w */
async function cancelRun(jid, w) {
  if (whyNot.value) {
    toast(whyNot.value, { bad: true });
    return;
  }
  const yes = await confirm({
    title: words.askCancel(w.class || words.thisJob), verb: words.cancelJob, danger: true, reason: true,
    facts: [[common.job, jid], [common.process, w.identity], [common.runningFor, w.started_at && seconds(now.value - w.started_at)]],
    body: html`<p>${words.aboutCancelling}</p>`,
  });
  if (!yes) return;
  try {
    await ask(apiPath('jobs', [jid, 'cancel']), { method: 'POST', reason: yes.reason });
    toast(words.cancelRequested);
  } catch (e) {
    failed(e);
  }
}

/** @param {{l: any}} p */
const Leased = ({ l }) => html`<${Empty} icon="clock" title=${words.leased}><p>${words.aboutLease(l.attempt, html`<${Time} at=${l.until} />`, html`<${ToQueue} name=${l.queue} />`)}</p><//>`;

/** Why the job may wait. @param {{q: any}} p */
function Why({ q }) {
  if (q.paused) return html`<p class="warn strong">${words.queuePausedBy(html`<${PausedBy} pause=${q.paused} />`)}</p>`;
  if (q.state === 'paused') return html`<p class="warn strong">${words.queuePaused}</p>`;
  if (q.consumers === 0) return html`<p class="bad strong">${words.noWorkersConsume}</p>`;
  if (q.state === 'saturated') return html`<p class="bad strong">${words.allSlotsBusy}</p>`;
  return html`<p>${q.ready ? words.ready(q.ready) : words.noneReady}</p>`;
}
