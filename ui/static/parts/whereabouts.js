// @ts-check
// What became of a job, and where it is that waits in no set: with a worker, leased, in its queue, or gone.
import { html } from '../core/h.js';
import { plural } from '../core/format.js';
import { useAll } from '../core/resource.js';
import { link } from '../core/router.js';
import { PausedBy } from './queues.js';
import { Empty } from './states.js';
import { Since, Time } from './time.js';

const events = { fired: ['info', 'Sent to its queue, as it was due'], triggered: ['info', 'Sent to its queue by hand'], retried: ['info', 'Sent to its queue for another attempt'], killed: ['bad', 'Moved to the dead jobs'], deleted: ['bad', 'Deleted'], changed: ['warn', 'Changed'], undone: ['ok', 'Taken back'],
  expired: ['warn', 'Expired before it was due'], trimmed: ['warn', 'Dropped: the dead set was full or it was too old'], duplicate: ['', 'The same publish came again'], enqueued: ['info', 'Enqueued'], refired: ['warn', 'Sent again, as it was in doubt'], succeeded: ['ok', 'Succeeded'], success: ['ok', 'Succeeded'], started: ['info', 'Started'], failed: ['bad', 'Failed'], dead: ['bad', 'Died'], buried: ['bad', 'Died'], scheduled: ['info', 'Scheduled'], retry: ['warn', 'To be retried'], discarded: ['warn', 'Discarded'] };
/** What workers say became of an attempt. */
const ends = { success: ['ok', 'succeeded'], failed: ['bad', 'failed'], dead: ['bad', 'failed, and it was the last'], discarded: ['warn', 'was discarded'], expired: ['warn', 'came too late'] };

/** @param {any} e @returns {[string, string]} how it looks, and what it says */
export function told(e) {
  const [look, text] = e.run && ends[e.what] ? ends[e.what] : events[e.what] || ['', e.what];
  return [look, e.run && ends[e.what] ? `${e.attempt ? 'Attempt ' + e.attempt : 'An attempt'} ${text}` : text];
}

/** What happened to it and what workers reported of it, the newest last. @param {any} d @returns {any[]} */
export function factsOf(d) {
  const runs = (d?.runs || []).map((/** @type {any} */ r) => ({ ...r, what: r.status, run: true }));
  return [...(d?.events || []), ...runs].sort((a, b) => a.at - b.at);
}

/** After these it is in its queue, or with a worker. */
const sent = ['fired', 'triggered', 'retried', 'enqueued', 'refired'];

/** @param {{jid: string, d?: any, seen?: string, otherwise?: any}} p d: what its timeline says; seen: the queue that an entry named; otherwise: what stands here if nobody knows of it */
export function Whereabouts({ jid, d, seen, otherwise }) {
  const last = factsOf(d).at(-1);
  const processes = useAll('processes', { topic: 'processes' });
  // A process tells now and then what it runs: what it told of before a run ended is over.
  const work = (processes.data || []).flatMap((/** @type {any} */ p) => p.work.filter((/** @type {any} */ w) => w.jid === jid && !(last?.run && last.at > (w.started_at || p.heard_at))).map((/** @type {any} */ w) => ({ ...w, p })));
  const queue = seen || d?.leases?.[0].queue || d?.runs?.[0]?.queue;
  const waits = !work.length && !d?.leases && last && !last.run && sent.includes(last.what);
  // Among all of them: one that was made for this job is not told of at once, and to ask for it alone would fail until then.
  const queues = useAll(waits && queue ? 'job-queues' : null, { topic: 'queues' });
  const q = queues.data?.find((/** @type {any} */ one) => one.name === queue);
  if (!processes.data && !processes.error) return null;
  if (!d && !work.length) return otherwise;
  return html`<section class="card" aria-label="Where it is">${work.length ? work.map((/** @type {any} */ w) => html`<${Running} w=${w} />`) : d.leases ? d.leases.map((/** @type {any} */ l) => html`<${Leased} l=${l} />`)
    : waits ? html`<${Empty} icon="queue" title="In its queue, or being worked off"><p>It was sent to ${queue ? html`<${ToQueue} name=${queue} />` : 'its queue'} <${Time} at=${last.at} />, and no worker has told of a run since.</p>${q && html`<${Why} q=${q} />`}<//>`
    : html`<${Empty} icon="check" title="It waits nowhere now"><p>${last ? html`${told(last)[1]} <${Time} at=${last.at} />.` : 'What became of it is not known.'}</p><//>`}</section>`;
}

/** @param {{name: string}} p */
const ToQueue = ({ name }) => html`<a class="strong" href=${link('job-queues', name)}>${name}</a>`;

/** @param {{w: any}} p */
function Running({ w }) {
  const lost = w.p.state === 'lost';
  return html`<${Empty} icon=${lost ? 'alert' : 'worker'} title=${lost ? 'It ran on a process that is lost' : 'It is running'}><p>On <a class="strong" href=${link('worker-processes', w.p.identity)}>${w.p.identity}</a>${w.started_at && html` for <${Since} since=${w.started_at} />`}, from <${ToQueue} name=${w.queue} />, as that process said <${Time} at=${w.p.heard_at} />.</p><//>`;
}

/** @param {{l: any}} p */
const Leased = ({ l }) => html`<${Empty} icon="clock" title="It is leased"><p>Somebody works on attempt ${l.attempt} over HTTP, until <${Time} at=${l.until} /> at the latest: it goes back to <${ToQueue} name=${l.queue} /> if it is not settled by then.</p><//>`;

/** Why it may wait. @param {{q: any}} p */
function Why({ q }) {
  if (q.paused) return html`<p class="warn strong">The queue is paused <${PausedBy} pause=${q.paused} /></p>`;
  if (q.state === 'paused') return html`<p class="warn strong">The queue is paused.</p>`;
  if (q.consumers === 0) return html`<p class="bad strong">Nobody consumes the queue: start a worker for it.</p>`;
  return html`<p>${q.ready ? `${plural(q.ready, 'job waits', 'jobs wait')} there.` : 'No job waits there now.'}</p>`;
}
