// @ts-check
import { html, useMemo, useRef, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { exact } from '../core/format.js';
import { itemTexts, memberText, ownText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { nameOfJob } from '../core/message.js';
import { mostAttempts } from '../core/story.js';
import { common } from '../core/words.js';
import { job as words } from '../core/pagewords.js';
import { actions, actionsOf, actOn, copyOf } from '../parts/actions.js';
import { failedAttempts, nextBackoff } from '../parts/entries.js';
import { useGoverned } from '../parts/governed.js';
import { Icon } from '../parts/icon.js';
import { Message } from '../parts/message.js';
import { Payload } from '../parts/payload.js';
import { Banner, Card, copy, CopyCurl, Empty, Failure, Title } from '../parts/states.js';
import { Story } from '../parts/story.js';
import { Trace } from '../parts/trace.js';
import { Time } from '../parts/time.js';
import { KeysOf } from '../parts/uniquekeys.js';
import { Running, Whereabouts } from '../parts/whereabouts.js';
import { WhyWaits } from '../parts/whywaits.js';

const titles = { 'scheduled-jobs': common.scheduled, retries: common.retry, 'dead-jobs': common.dead, 'gated-jobs': common.blocked };

/** @param {{part: string}} p */
export default function Job({ part: jid }) {
  const url = apiPath('jobs', jid);
  const job = useResource(url, { topic: 'jobs', every: 4000 });
  const d = job.data;
  const entries = useMemo(() => itemTexts(job.text, 'entries').map((raw, i) => ({ ...d.entries[i], raw })), [job.text]);
  const seen = useRef(/** @type {any} */ (null)); // the content of an entry that is gone now
  if (entries[0]) seen.current = entries[0].millrace;
  // A job that is in its queue has no entry, and may have a key.
  const unique = !entries.length || entries.some((e) => (e.job || e).gate?.unique);
  const governed = useGoverned(entries.length > 0).data || [];
  const limited = (/** @type {any} */ e) => e.millrace.set !== 'dead-jobs' && (!!(e.job || e).gate || governed.some((/** @type {any} */ q) => q.name === e.millrace.queue));
  const cls = seen.current?.class || d?.running?.[0].class || d?.runs?.[0]?.class || d?.leases?.[0].class || d?.job?.class;
  return html`<${Title} crumbs=${[[common.jobs, link('jobs')]]} title=${html`${nameOfJob(entries[0]?.job || d?.job, cls) || common.job} <code class="dim">${jid}</code>`}
      after=${html`<${OfPeriodic} of=${(entries[0]?.job || entries[0] || d?.job)?.periodic} />`}>
      <button class="icon" aria-label=${words.copyId} title=${words.copyId} onClick=${() => copy(jid)}><${Icon} name="copy" /></button><${CopyCurl} url=${url} /><//>
    ${job.error?.status === 404 && !d ? html`<${NotFound} jid=${jid} />` : html`<${Failure} error=${job.error} at=${d ? job.at : 0} refresh=${job.refresh} />`}
    ${d && html`<div class="grid"><div class="c8 stack cards">
        ${d.running?.map((w) => html`<${Running} key=${w.identity} w=${w} jid=${jid} />`)}
        ${d.events?.length > 0 && !entries.length && html`<${NotRun} event=${d.events[0]} />`}
        ${entries.some(limited) && html`<${WhyWaits} jid=${jid} />`}
        ${entries.map((e) => html`<${Entry} key=${e.millrace.offset} row=${e} done=${job.refresh} />`)}
        ${!entries.length && !d.running && html`<${Whereabouts} d=${d} seen=${seen.current?.queue} />`}
        ${d.job && html`<${Message} job=${d.job} args=${memberText(job.text, 'job', 'args')} /><${Sent} raw=${memberText(job.text, 'job')} name=${cls} />`}
      </div>
      <div class="c4 stack cards">${unique && html`<${KeysOf} jid=${jid} />`}<${Story} d=${d} done=${job.refresh} /></div></div>`}`;
}

/** That the job did not run because another one has its key. @param {{event: any}} p */
function NotRun({ event: { what, other } }) {
  const says = { duplicate: words.duplicateOf, replaced: words.replacedBy }[what];
  return other && says && html`<${Banner} icon="key">${says(html`<a class="mono anywhere" href=${link('jobs', other)}>${other}</a>`)}<//>`;
}

/** The periodic job that enqueued the job, and the tick. @param {{of: any}} p */
function OfPeriodic({ of }) {
  if (typeof of?.name !== 'string') return null;
  const to = html`<a href=${link('periodic-jobs', of.name, { tick: of.tick })}>${of.name}</a>`;
  return html`<span class="dim small anywhere">${words.tickOf(to, exact(of.tick))}</span>`;
}

/** @param {{jid: string}} p */
const NotFound = ({ jid }) => html`<section class="card"><${Empty} icon="search" title=${words.jobNotFound}><p>${words.whereItMayBe}</p>
  <div class="row wrap">${Object.entries(common.inSmall).map(([set, name]) => html`<a class="btn" href=${link(set, [], { text: jid })}>${common.findIn(name)}</a>`)}</div><//></section>`;

/** The job as it was last sent to its queue. @param {{raw: string, name?: string}} p */
function Sent({ raw, name }) {
  return html`<${Card} title=${common.arguments}><${Payload} text=${memberText(raw, 'args') || 'null'} label=${words.theArguments} path="args" name=${(name || 'job') + '-args'} />
    <p class="dim small">${words.ofTheLastDispatch}</p><//>`;
}

/** @param {{row: any, done: () => void}} p */
function Entry({ row, done }) {
  const m = row.millrace;
  const set = m.set;
  const lines = typeof row.backtrace === 'string' ? row.backtrace.split('\n') : row.backtrace || [];
  const args = memberText(row.raw, ...(row.job ? ['job'] : []), 'args') || 'null';
  return html`<${Card} title=${titles[set]} tools=${mayAct.value && html`<${Tools} set=${set} row=${row} done=${done} />`}>
      ${m.refused && html`<${Banner} look="bad" icon="alert">${words.refused(m.refused)}<//>`}
      ${m.omitted && html`<${Banner} icon="warn">${words.notRead(m.omitted)}<//>`}
      <${Facts} row=${row} /><//>
    ${(row.error_class || row.error_message) && html`<${Card} title=${common.error} tools=${html`<${SameError} set=${set} row=${row} />`}>
      <${Trace} error=${{ class: row.error_class, message: row.error_message, backtrace: lines }} /><//>`}
    ${!m.omitted && html`<${Message} job=${row.job} args=${args} set=${set} />
      <${Card} title=${common.arguments}><${Payload} text=${args} label=${words.theArguments} path="args" name=${m.class + '-args'} /><//>
      <${Record} row=${row} />`}`;
}

/**
 * The record of an entry. It repeats the error and the arguments, so it is shown on request.
 * @param {{row: any}} p
 */
function Record({ row }) {
  const [open, setOpen] = useState(false);
  const tools = html`<button class="btn small" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? words.hideTheRecord : words.showTheRecord}</button>`;
  return html`<${Card} title=${common.record} tools=${tools}>${open && html`<${Payload} text=${ownText(row.raw)} label=${words.theRecord} name=${row.jid || 'record'} />`}<//>`;
}

/** @param {{set: string, row: any, done: () => void}} p */
function Tools({ set, row, done }) {
  const look = (/** @type {string} */ a) => (actions[a].hurt ? 'hurt' : a === 'change' ? '' : 'primary');
  const button = (/** @type {string} */ a) => html`<button key=${a} class=${'btn small ' + look(a)} onClick=${() => actOn(set, a, row, done)}>
    <${Icon} name=${actions[a].icon} small />${actions[a].label}</button>`;
  const some = (/** @type {boolean} */ hurt) => actionsOf[set].filter((/** @type {string} */ a) => !!actions[a].hurt === hurt).map(button);
  return html`${some(false)}<button class="btn small" onClick=${() => copyOf(row)}><${Icon} name="copy" small />${common.runACopy}</button>${some(true)}`;
}

/** @param {{row: any}} p */
function Facts({ row }) {
  const m = row.millrace;
  const job = row.job || row;
  const made = job.enqueued_at || job.created_at;
  const backoff = nextBackoff(row);
  const when = { 'dead-jobs': common.died, 'gated-jobs': common.since }[m.set];
  return html`<dl class="facts"><dt>${when || common.due}</dt><dd><${Time} at=${m.at} past=${!!when} /></dd>
    <dt>${common.queue}</dt><dd><a href=${link('job-queues', m.queue || 'default')}>${m.queue}</a></dd>
    <dt>${common.class}</dt><dd><a href=${link('job-metrics', m.class || '-')}>${m.class}</a></dd>
    ${job.gate?.key && html`<dt>${words.limitKey}</dt><dd>${job.gate.key}</dd>`}
    <dt>${words.failedAttempts}</dt><dd>${m.omitted ? failedAttempts(row) : common.of(failedAttempts(row), mostAttempts(job))}</dd>
    ${m.set === 'retries' && !m.omitted && html`<dt>${words.nextBackoff}</dt><dd>${backoff === null ? words.lastAttempt : words.atLeast(backoff)}</dd>`}
    ${job.priority !== undefined && html`<dt>${common.priority}</dt><dd>${job.priority}</dd>`}
    ${job.tags?.length > 0 && html`<dt>${common.tags}</dt><dd>${job.tags.map((/** @type {string} */ t) => html`<a class="tag" href=${link(m.set, [], { tag: t })}>${t}</a> `)}</dd>`}
    ${row.reason && html`<dt>${common.reason}</dt><dd>${row.reason}</dd>`}
    ${row.worker && html`<dt>${common.worker}</dt><dd><a href=${link('worker-processes', row.worker)}>${row.worker}</a></dd>`}
    ${made && html`<dt>${common.enqueued}</dt><dd><${Time} at=${made} past /></dd>`}</dl>`;
}

/**
 * A link to all jobs that failed with the same error. The API has fingerprints of groups, not of
 * entries. It returns the groups at the time of this entry, which are few and include its own.
 * @param {{set: string, row: any}} p
 */
function SameError({ set, row }) {
  const m = row.millrace;
  const then = useResource(apiPath('errors', [], { set, class: m.class, queue: m.queue, from: m.at - 0.001, to: m.at + 0.001 }), { every: 0 });
  const alike = (then.data?.items || []).filter((g) => g.error_class === row.error_class);
  const print = (alike.find((g) => g.jid === row.jid) || (alike.length === 1 && alike[0]))?.fingerprint;
  const all = useResource(print ? apiPath('errors', [], { set, class: m.class }) : null, { every: 0 });
  const n = all.data?.items.find((g) => g.fingerprint === print)?.count;
  return html`<a class="btn small" href=${link(set, [], { error: print || row.error_class })}>${n > 1 ? words.withThisError(n, all.data.complete) : words.jobsWithThisError}</a>`;
}
