// @ts-check
// The actions on entries. The more entries an action affects, the more it asks before. A text says
// so if it can be undone.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { serverNow } from '../core/clock.js';
import { filterText } from '../core/filtertext.js';
import { absolute, exact, local, relative } from '../core/format.js';
import { nameOfJob } from '../core/message.js';
import { whyNotMany } from '../core/overview.js';
import { memberText, ownText, without } from '../core/rawjson.js';
import { link } from '../core/router.js';
import { whyNot } from '../core/session.js';
import { confirm } from './dialog.js';
import { Difference } from './difference.js';
import { ofSet, operate, setNames } from './ops.js';
import { failed, overtaken, toast } from './toast.js';
import { common, actions as words } from '../core/words.js';

/**
 * @typedef {{set: string, rows?: any[], filter?: Record<string, any>, group?: any, count:
 *   number, asOf?: number, expected?: number}} Target what an action is for: `rows`, or all entries
 *   that match `filter`; `group` is the error that a fingerprint in it stands for
 */

/**
 * @type {Record<string, {label: string, icon: string, did: string, hurt?: boolean, key?: string}>}
 */
export const actions = {
  trigger: { label: words.runNow, icon: 'play', did: words.enqueued, key: 'r' },
  retry: { label: words.retryNow, icon: 'retry', did: words.enqueued, key: 'r' },
  change: { label: words.change, icon: 'edit', did: words.changed },
  kill: { label: common.kill, icon: 'skull', did: words.movedToDeadJobs, hurt: true },
  delete: { label: common.delete, icon: 'trash', did: words.deleted, hurt: true, key: '#' },
};
/** The actions of each set. */
export const actionsOf = {
  'scheduled-jobs': ['trigger', 'change', 'kill', 'delete'], retries: ['retry', 'change', 'kill', 'delete'], 'dead-jobs': ['retry', 'change', 'delete'],
  'gated-jobs': ['change', 'kill', 'delete'],
};
/** The bulk actions of each set. */
export const bulkOf = {
  'scheduled-jobs': ['trigger', 'change', 'kill', 'delete'], retries: ['retry', 'change', 'kill', 'delete'], 'dead-jobs': ['retry', 'delete'],
  'gated-jobs': ['kill', 'delete'],
};

export const jidOf = (row) => row.jid || row.job?.jid || '';
const nameOf = (row) => `${nameOfJob(row.job, row.millrace?.class) || common.jobInline} ${jidOf(row).slice(0, 8)}`;

/** @param {string} set @param {string} action @param {any} row @param {() => void} done */
export async function actOn(set, action, row, done) {
  if (whyNot.value) return toast(whyNot.value, { bad: true });
  if (action === 'change') return change(set, row, done);
  const jid = jidOf(row);
  let reason = '';
  if (action === 'delete') {
    const yes = await confirm({ title: words.deleteThisJob, facts: facts({ set, rows: [row], count: 1 }), verb: words.delete1Job, danger: true, reason: true, body: canUndo() });
    if (!yes) return undefined;
    reason = yes.reason;
  }
  overtaken((of) => of.jid === jid); // an earlier offer to undo would now undo something else
  const offset = row.millrace?.offset;
  try {
    const query = offset === undefined ? undefined : { offset };
    if (action === 'delete') await ask(apiPath(set, jidOf(row), query), { method: 'DELETE', reason });
    else await ask(apiPath(set, [jidOf(row), action], query), { method: 'POST', reason });
    const undo = action === 'delete' || action === 'kill' ? () => undoOne(set, jidOf(row), offset, done) : undefined;
    toast(words.done(nameOf(row), actions[action].did), { undo, of: { set, jid } });
  } catch (e) {
    failed(e);
  }
  return soon(done);
}

const canUndo = () => html`<p class="dim small">${words.youCanUndoThis}</p>`;

/** @param {string} set @param {string} jid @param {number} offset @param {() => void} done */
export async function undoOne(set, jid, offset, done) {
  overtaken((of) => of.jid === jid);
  try {
    await ask(apiPath(set, [jid, 'undo'], { offset }), { method: 'POST' });
    toast(common.undone);
  } catch (e) {
    failed(e);
  }
  soon(done);
}

/**
 * Refreshes the list. It shows the action once the record of it has been read back.
 * @param {() => void} done
 */
function soon(done) {
  setTimeout(done, 150);
  setTimeout(done, 1200);
}

/** @param {Target} t @returns {[string, any][]} */
export function facts(t) {
  const rows = t.rows || [];
  const names = (/** @type {string} */ k) => {
    const all = [...new Set(rows.map((r) => r.millrace?.[k]).filter(Boolean))];
    return common.firstOf(all, 4);
  };
  const at = rows.map((r) => r.millrace?.at).filter(Boolean).sort((a, b) => a - b);
  const span = at.length ? at.length > 1 ? common.from(absolute(at[0]), absolute(at.at(-1))) : absolute(at[0]) : '';
  const filter = t.filter && (filterText(t.filter, t.group) || words.noFilter(setNames[t.set]));
  return [[common.jobs, ofSet(t.set, t.count)], [common.filter, filter], [common.queues, names('queue')], [common.classes, names('class')],
    [t.set === 'dead-jobs' ? common.died : common.due, span]];
}

/** @param {string} action @param {Target} t @param {() => void} done */
export async function actOnMany(action, t, done) {
  if (whyNotMany.value) return toast(whyNotMany.value, { bad: true });
  const verb = { trigger: common.run, retry: common.retry, kill: common.kill, delete: common.delete, change: common.reschedule }[action];
  const hurt = !!actions[action].hurt;
  const spread = action === 'retry' || action === 'trigger';
  const yes = await confirm({
    title: words.askMany(verb, ofSet(t.set, t.count)), facts: facts(t), verb: words.many(verb, ofSet(t.set, t.count)), danger: hurt, reason: true,
    typed: t.count > 100 && hurt ? String(t.count) : undefined,
    body: html`${t.filter && html`<p class="dim small">${words.appliesTo(ofSet(t.set, t.count))}</p>`}${!spread && canUndo()}`,
    value: action === 'change' ? { at: local(serverNow() + 3600) } : spread ? { over: '' } : undefined,
    check: (v) => (action === 'change' && Number.isNaN(Date.parse(v.at)) ? words.enterADateAndTime : v?.over && !(Number(v.over) > 0) ? words.enterMinutes : ''),
    fields: action === 'change' ? dueField : spread ? spreadField : undefined,
  });
  if (!yes) return undefined;
  const minutes = Number(yes.value?.over) || 0;
  /** @type {any} */
  const body = { action, set: t.set, reason: yes.reason || undefined };
  if (t.filter) Object.assign(body, { filter: numbers(t.filter), as_of: t.asOf, expected_count: t.expected });
  else Object.assign(body, { jids: [...new Set(t.rows.map(jidOf))], as_of: lastOf(t.rows) });
  if (minutes) body.rate = Math.max(0.01, t.count / (minutes * 60));
  if (action === 'change') body.at = Date.parse(yes.value.at) / 1000;
  const id = await operate(body);
  soon(done); // also after a refusal: the list has changed, and must show it
  return id;
}

/**
 * Returns the first offset of the newest entry. Later entries with the same id were not seen.
 * @param {any[]} rows
 */
const lastOf = (rows) => rows.reduce((n, r) => Math.max(n, r.millrace.first_offset), -1);

/** @param {Record<string, any>} filter */
function numbers(filter) {
  const f = { ...filter };
  for (const k of ['from', 'to']) if (f[k]) f[k] = Number(f[k]);
  return f;
}

/** @type {[string, number][]} */
const delays = [[words.in10Min, 600], [words.in1H, 3600], [words.in1D, 86_400], [words.in7D, 604_800]];

/**
 * The picker of a time. It has the form of the browser's language, so the time is also below it in
 * the form of all other times.
 * @param {(v: any) => void} set
 * @param {any} value
 */
export function dueField(set, value) {
  const plus = (/** @type {number} */ s) => set({ ...value, at: local(serverNow() + s) });
  const at = Date.parse(value.at) / 1000;
  return html`<label class="field"><span>${words.dueAt}</span>
      <input class="in" type="datetime-local" value=${value.at} onInput=${(e) => set({ ...value, at: e.target.value })} /></label>
    ${!Number.isNaN(at) && html`<p class="dim small num">${exact(at)} · ${relative(at, serverNow())}</p>`}
    <div class="row wrap">${delays.map(([text, s]) => html`<button type="button" class="btn small" onClick=${() => plus(s)}>${text}</button>`)}</div>`;
}

/** @param {(v: any) => void} set @param {any} value */
function spreadField(set, value) {
  return html`<label class="field"><span>${words.spreadOverMinutes} <span class="dim">${words.emptyAsFastAsPossible}</span></span>
    <input class="in" inputmode="decimal" placeholder="10" value=${value.over} onInput=${(e) => set({ over: e.target.value })} /></label>`;
}

/** The editor of arguments. @param {{put: (v: any) => void, v: any}} p */
export const ArgsField = ({ put, v }) => html`<label class="field"><span>${common.arguments}</span>
  <textarea class="in" rows="7" spellcheck=${false} value=${v.args} onInput=${(e) => put({ ...v, args: e.target.value })}></textarea></label>`;

/** @param {{put: (v: any) => void, v: any}} p */
const JobFields = ({ put, v }) => html`<div class="row low">
    <label class="field grow"><span>${common.queue}</span>
      <input class="in" value=${v.queue} onInput=${(e) => put({ ...v, queue: e.target.value })} /></label>
    <label class="field"><span>${common.priority}</span>
      <input class="in" type="number" min="0" max="10" value=${v.priority} onInput=${(e) => put({ ...v, priority: e.target.value })} /></label></div>
  <${ArgsField} put=${put} v=${v} />`;

/**
 * Changes time, queue, priority or arguments of one entry. The arguments are sent exactly as they
 * are in the field.
 * @param {string} set
 * @param {any} row
 * @param {() => void} done
 */
export async function change(set, row, done) {
  const at = row.millrace.at;
  const args = memberText(row.raw, ...(row.job ? ['job', 'args'] : ['args']));
  const first = { at: local(at), queue: row.millrace.queue, priority: row.job?.priority ?? '', args, retry: false };
  const timed = set === 'scheduled-jobs' || set === 'retries';
  const yes = await confirm({
    title: words.changeOf(nameOf(row)), verb: (v) => (v.retry ? words.changeAndRetry : words.change), reason: true, wide: true, value: first,
    check: (v) => (timed && Number.isNaN(Date.parse(v.at)) ? words.enterADateAndTime : !v.queue.trim() ? words.enterAQueue : !kindOf(v.args) ? words.argumentsMustBeJson : ''),
    fields: (put, v) => html`${timed && dueField(put, v)}<${JobFields} put=${put} v=${v} />
      <${Difference} was=${args} is=${v.args} />
      ${actionsOf[set].includes('retry') && html`<label class="check">
        <input type="checkbox" checked=${v.retry} onChange=${(e) => put({ ...v, retry: e.target.checked })} />${words.retryItNow}</label>`}`,
  });
  if (!yes) return undefined;
  const v = yes.value;
  const parts = [];
  if (timed && v.at !== first.at) parts.push(`"at":${Date.parse(v.at) / 1000}`);
  if (v.queue !== first.queue) parts.push(`"queue":${JSON.stringify(v.queue.trim())}`);
  if (String(v.priority) !== String(first.priority) && v.priority !== '') parts.push(`"priority":${Number(v.priority)}`);
  if (v.args !== first.args) parts.push(`"args":${v.args}`);
  if (!parts.length) return v.retry ? actOn(set, 'retry', row, done) : undefined;
  overtaken((of) => of.jid === jidOf(row));
  try {
    const { data } = await ask(apiPath(set, jidOf(row), { offset: row.millrace.offset }), { method: 'PATCH', body: '{' + parts.join(',') + '}', reason: yes.reason });
    if (v.retry) return actOn(set, 'retry', { ...row, millrace: { ...row.millrace, offset: data?.millrace?.offset ?? row.millrace.offset } }, done);
    toast(words.done(nameOf(row), words.changed), { undo: () => undoOne(set, jidOf(row), row.millrace.offset, done), of: { set, jid: jidOf(row) } });
  } catch (e) {
    failed(e);
  }
  return soon(done);
}

/**
 * Enqueues a copy of a job, with a new id and all its attempts. The rest is unchanged, byte for
 * byte.
 * @param {any} row
 */
export async function copyOf(row) {
  /** @type {[string, string][]} */
  const facts = [[common.class, row.millrace.class], [common.queue, row.millrace.queue]];
  if (!await confirm({ title: words.askCopy(nameOf(row)), verb: common.runACopy, facts, body: html`<p class="dim">${words.aboutCopies}</p>` })) return;
  let job = row.job ? memberText(row.raw, 'job') : ownText(row.raw);
  for (const name of ['jid', 'at', 'enqueued_at', 'retry_count', 'error_class', 'error_message', 'failed_at']) job = without(job, name);
  try {
    const { data } = await ask(apiPath('jobs'), { method: 'POST', body: job });
    toast(words.copyEnqueued, { to: link('jobs', data.jid), toText: words.show });
  } catch (e) {
    failed(e);
  }
}

/** Returns what a text is as JSON: an array, an object, or '' for all else. @param {string} text */
export function kindOf(text) {
  try {
    const args = JSON.parse(text);
    return Array.isArray(args) ? 'array' : args !== null && typeof args === 'object' ? 'object' : '';
  } catch {
    return '';
  }
}
