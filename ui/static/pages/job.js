// @ts-check
import { html, useMemo, useRef } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count, millis, seconds } from '../core/format.js';
import { itemTexts, memberText, ownText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { actions, actionsOf, actOn, copyOf, undoOne } from '../parts/actions.js';
import { Icon } from '../parts/icon.js';
import { Payload } from '../parts/payload.js';
import { Card, copy, CopyCurl, Empty, Failure, Title } from '../parts/states.js';
import { Trace } from '../parts/trace.js';
import { Time } from '../parts/time.js';
import { factsOf, told, Whereabouts } from '../parts/whereabouts.js';

const where = { 'scheduled-jobs': 'scheduled', retries: 'waits for its next attempt', 'dead-jobs': 'dead', 'gated-jobs': 'waits for its queue' };

/** @param {{part: string}} p */
export default function Job({ part: jid }) {
  const url = apiPath('jobs', jid);
  const job = useResource(url, { topic: 'jobs', every: 4000 });
  const d = job.data;
  const entries = useMemo(() => itemTexts(job.text, 'entries').map((raw, i) => ({ ...d.entries[i], raw })), [job.text]);
  const first = entries[0];
  const seen = useRef(/** @type {any} */ (null)); // what an entry said that has gone since
  if (first) seen.current = first.millrace;
  const cls = seen.current?.class || d?.runs?.[0]?.class || d?.leases?.[0].class;
  const unknown = html`<section class="card"><${Empty} icon="search" title="Nothing is known of this job"><p>${job.error?.reason}</p>
        <div class="row wrap"><a class="btn" href=${link('scheduled-jobs', [], { text: jid })}>Find in scheduled</a><a class="btn" href=${link('retries', [], { text: jid })}>Find in retries</a><a class="btn" href=${link('dead-jobs', [], { text: jid })}>Find in dead</a></div><//></section>`;
  return html`<${Title} crumbs=${[['Jobs', link('job-queues')]]} title=${html`${cls || 'Job'} <code class="dim">${jid}</code>`}>
      <button class="icon" aria-label="Copy the id" title="Copy the id" onClick=${() => copy(jid)}><${Icon} name="copy" /></button><${CopyCurl} url=${url} /><//>
    ${job.error?.status === 404 && !d ? html`<${Whereabouts} jid=${jid} otherwise=${unknown} />`
      : html`<${Failure} error=${job.error} at=${d ? job.at : 0} refresh=${job.refresh} />`}
    ${d && html`<div class="grid"><div class="c8 stack" style=${{ gap: '1rem' }}>${entries.map((e) => html`<${Entry} key=${e.millrace.offset} row=${e} done=${job.refresh} />`)}
        ${!entries.length && html`<${Whereabouts} jid=${jid} d=${d} seen=${seen.current?.queue} />`}
      </div>
      <div class="c4"><${Story} d=${d} entries=${entries} done=${job.refresh} /></div></div>`}`;
}

/** @param {{row: any, done: () => void}} p */
function Entry({ row, done }) {
  const m = row.millrace;
  const set = m.set;
  const inner = row.job ? ['job'] : [];
  const own = ownText(row.raw);
  const lines = typeof row.backtrace === 'string' ? row.backtrace.split('\n') : row.backtrace || [];
  const job = row.job || row;
  return html`<${Card} title=${{ 'scheduled-jobs': 'Scheduled', retries: 'Retry', 'dead-jobs': 'Dead', 'gated-jobs': 'Waits for its queue' }[set]} tools=${mayAct.value && html`${actionsOf[set].map((/** @type {string} */ a) => html`<button class=${'btn small' + (actions[a].hurt ? ' hurt' : a === 'change' ? '' : ' primary')} onClick=${() => actOn(set, a, row, done)}><${Icon} name=${actions[a].icon} small />${actions[a].label}</button>`)}
        <button class="btn small" onClick=${() => copyOf(row)}><${Icon} name="copy" small />Run a copy</button>`}>
      ${m.refused && html`<div class="banner bad"><${Icon} name="alert" /><span>The broker could not take it and it is not tried again by itself: ${m.refused}</span></div>`}
      ${m.omitted && html`<div class="banner"><${Icon} name="warn" /><span>The record could not be read: ${m.omitted}</span></div>`}
      <dl class="facts"><dt>State</dt><dd>${where[set]}</dd><dt>${set === 'dead-jobs' ? 'Died' : 'Due'}</dt><dd><${Time} at=${m.at} /></dd>
        <dt>Queue</dt><dd><a href=${link('job-queues', m.queue || 'default')}>${m.queue}</a></dd><dt>Class</dt><dd><a href=${link('job-metrics', m.class || '-')}>${m.class}</a></dd>
        <dt>Attempts that failed</dt><dd>${m.attempt ?? 0}</dd>${job.priority !== undefined && html`<dt>Priority</dt><dd>${job.priority}</dd>`}
        ${job.tags?.length > 0 && html`<dt>Tags</dt><dd>${job.tags.map((/** @type {string} */ t) => html`<a class="tag" href=${link(set, [], { tag: t })}>${t}</a> `)}</dd>`}
        ${row.reason && html`<dt>Reason</dt><dd>${row.reason}</dd>`}${row.worker && html`<dt>Worker</dt><dd><a href=${link('worker-processes', row.worker)}>${row.worker}</a></dd>`}
        ${(job.enqueued_at || job.created_at) && html`<dt>Enqueued</dt><dd><${Time} at=${job.enqueued_at || job.created_at} /></dd>`}<dt>Offset</dt><dd class="num">${m.offset}${m.first_offset !== m.offset ? ` (first ${m.first_offset})` : ''}</dd></dl><//>
    ${(row.error_class || row.error_message) && html`<${Card} title="Error" tools=${html`<${SameError} set=${set} row=${row} />`}><${Trace} error=${{ class: row.error_class, message: row.error_message, backtrace: lines }} /><//>`}
    ${!m.omitted && html`<${Card} title="Arguments"><${Payload} text=${memberText(row.raw, ...inner, 'args') || 'null'} label="the arguments" path="args" name=${m.class + '-args'} /><//>
      <${Card} title="Record"><${Payload} text=${own} label="the record" name=${row.jid || 'record'} /><//>`}`;
}

/** The way to all that failed as this did. The API has fingerprints of groups, not of entries; the groups of the moment that an entry stands at are few, and its own is among them.
 * @param {{set: string, row: any}} p */
function SameError({ set, row }) {
  const m = row.millrace;
  const then = useResource(apiPath('errors', [], { set, class: m.class, queue: m.queue, from: m.at - 0.001, to: m.at + 0.001 }), { every: 0 });
  const alike = (then.data?.items || []).filter((/** @type {any} */ g) => g.error_class === row.error_class);
  const print = (alike.find((/** @type {any} */ g) => g.jid === row.jid) || (alike.length === 1 && alike[0]))?.fingerprint;
  const all = useResource(print ? apiPath('errors', [], { set, class: m.class }) : null, { every: 0 });
  const n = all.data?.items.find((/** @type {any} */ g) => g.fingerprint === print)?.count;
  return html`<a class="btn small" href=${link(set, [], { error: print || row.error_class })}>The same error${n > 1 ? ` (${all.data.complete ? '' : 'at least '}${count(n)})` : ''}</a>`;
}

/** What happened to it, and what workers reported of it, as one. @param {{d: any, entries: any[], done: () => void}} p */
function Story({ d, entries, done }) {
  const all = factsOf(d);
  const undoable = (/** @type {any} */ e) => mayAct.value && ['deleted', 'killed', 'changed'].includes(e.what) && e === all.filter((x) => x.set === e.set).at(-1);
  return html`<${Card} title="What became of it"><ol class="line">
    ${d.older_than_kept && html`<li class="dim">What was before is not kept</li>`}
    ${all.map((/** @type {any} */ e, /** @type {number} */ i) => { const [look, text] = told(e); const before = all[i - 1]; return html`<li key=${i} class=${look}><div class="strong">${text}</div><div class="dim small"><${Time} at=${e.at} />${e.set ? ' · ' + e.set.replace('-', ' ') : ''}${e.worker && html` · <a href=${link('worker-processes', e.worker)}>${e.worker}</a>`}${e.actor ? ' · by ' + e.actor : ''}${span('ran', e.duration_ms)}${e.attempt > 1 ? '' : span('waited', e.wait_ms)}</div>
      ${e.error_class && html`<div class="bad small">${e.error_class}</div>`}${before && e.at - before.at > 1 && html`<div class="dim small">${seconds(e.at - before.at)} after the one before</div>`}
      ${undoable(e) && html`<button class="btn small" onClick=${() => undoOne(e.set, d.jid, e.offset, done)}><${Icon} name="undo" small />Undo</button>`}</li>`; })}
    ${(d.leases || []).map((/** @type {any} */ l) => html`<li key=${l.id} class="info"><div class="strong">Attempt ${l.attempt} is leased</div><div class="dim small">until <${Time} at=${l.until} /></div></li>`)}
    ${entries.map((e) => html`<li key=${'n' + e.millrace.offset} class=${e.millrace.set === 'dead-jobs' ? 'bad' : 'warn'}><div class="strong">${e.millrace.set === 'dead-jobs' ? 'Dead' : e.millrace.set === 'retries' ? 'Waits for attempt ' + ((e.millrace.attempt ?? 0) + 1) : 'Waits until it is due'}</div><div class="dim small"><${Time} at=${e.millrace.at} /></div></li>`)}</ol><//>`;
}

/** @param {string} word @param {number|null|undefined} ms */
const span = (word, ms) => (ms === null || ms === undefined ? '' : ` · ${word} ${millis(ms)}`);
