// @ts-check
import { common, ops, story as words } from './words.js';
// The timeline of a job: what was done to it, and what workers reported, in the order of time.

/** Events that can be undone, if they have not been undone. */
const undoable = ['deleted', 'killed', 'changed'];

/**
 * @typedef {{at: number, what: string, look: string, text: string, event?: any, run?: any, undo?:
 *   boolean}} Fact `look`: ok, bad, warn, info or none; `undo`: it can be undone
 */

/** The look and the text of each event. */
const events = {
  fired: ['info', words.enqueuedOnSchedule], triggered: ['info', words.enqueuedManually], retried: ['info', words.enqueuedForAnotherAttempt],
  enqueued: ['info', common.enqueued], refired: ['warn', words.sentAgain],
  killed: ['bad', words.movedToDeadJobs], buried: ['bad', words.movedToDeadJobs], deleted: ['bad', words.deleted], changed: ['warn', words.changed],
  expired: ['warn', words.expiredBeforeItWasDue], cancelled: ['warn', words.cancelRequested],
  trimmed: ['warn', words.removed], duplicate: ['', words.duplicateIgnored], replaced: ['warn', words.replaced], returned: ['warn', words.notDelivered], refused: ['bad', words.theBrokerCannotTakeIt],
};

/** The look and the text of each status that workers report. */
const ends = { success: ['ok', words.succeeded], failed: ['bad', words.failed], dead: ['bad', words.failedNoRetriesLeft], discarded: ['warn', words.wasDiscarded], expired: ['warn', words.expired] };

const members = words.members;

/**
 * @param {any} e
 * @param {any} undid the event that it undoes, if there is one and it is known
 * @returns {[string, string]}
 */
function ofEvent(e, undid) {
  if (e.what === 'undone') return ['ok', undid?.what === 'changed' ? words.changeUndone : words.restoredTo(ops.sets[e.set] || words.itsList)];
  if (e.what === 'duplicate' && e.other) return ['warn', words.duplicate];
  const [look, text] = events[e.what] || ['', e.what];
  return [look, e.what === 'changed' && e.changes ? words.changedMembers(e.changes.map((c) => members[c.member] || c.member)) : text];
}

/** Returns how many attempts a job has: the first one, and its retries. @param {any} job */
export const mostAttempts = (job) => 1 + (typeof job?.retry === 'number' ? job.retry : job?.retry === false ? 0 : 25);

/** @param {any} r @param {number} most how many attempts the job has; 0: that is not known */
function ofRun(r, most) {
  const [look, text] = ends[r.status] || ['', r.status];
  return [look, words.attemptEnded(r.attempt, text, r.status === 'dead' ? most : 0)];
}

/**
 * Returns the text for a job that waits in a set.
 * @param {any} m the part of the entry that Millrace adds
 */
const waits = (m) => (m.set === 'retries' ? words.waitsForAttempt((m.attempt ?? 0) + 1) : m.set === 'gated-jobs' ? common.blocked : words.waitsUntilItIsDue);

/** Returns when the job was made, according to its producer. @param {any} d */
export function madeAt(d) {
  const job = d.entries?.[0] ? d.entries[0].job || d.entries[0] : d.job;
  return job?.created_at || job?.enqueued_at;
}

/**
 * @param {any} d the API's data about a job
 * @returns {Fact[]} the oldest first. The present state is the last fact, except for a dead job: it
 *   has been dead since it died
 */
export function storyOf(d) {
  /** @type {Fact[]} */
  const facts = [];
  const undoing = {};
  const latest = {};
  for (const event of [...(d.events || [])].sort((a, b) => a.record - b.record)) {
    const of = undoing[event.set] ||= [];
    const undid = event.what === 'undone' ? of.pop() : undefined;
    if (undoable.includes(event.what)) of.push(event);
    const [look, text] = ofEvent(event, undid);
    const fact = { at: event.at, what: event.what, look, text, event, undo: false };
    facts.push(fact);
    if (event.set) latest[event.set] = fact;
  }
  for (const fact of /** @type {Fact[]} */ (Object.values(latest))) fact.undo = undoable.includes(fact.what);
  const job = d.entries?.[0]?.job ?? d.job;
  const most = job ? mostAttempts(job) : 0;
  for (const run of d.runs || []) {
    const [look, text] = ofRun(run, most);
    facts.push({ at: run.at, what: run.status, look, text, run });
  }
  const entries = (d.entries || []).map((e) => e.millrace);
  for (const m of entries) if (m.set === 'dead-jobs') facts.push({ at: m.at, what: 'dead', look: 'bad', text: common.dead });
  // A job that is due now may be fired before the key is journaled under which it was enqueued.
  const order = (/** @type {Fact} */ f) => f.at - (f.what === 'enqueued' ? 1 : 0);
  facts.sort((a, b) => order(a) - order(b));
  const made = madeAt(d);
  if (made && !(facts[0]?.at < made)) facts.unshift({ at: made, what: 'made', look: '', text: words.created });
  for (const w of d.running || []) facts.push({ at: w.started_at, what: 'running', look: 'info', text: common.running, run: { worker: w.identity } });
  for (const l of d.leases || []) facts.push({ at: l.until, what: 'leased', look: 'info', text: words.leaseEnds(l.attempt) });
  for (const m of entries) if (m.set !== 'dead-jobs') facts.push({ at: m.at, what: m.set === 'gated-jobs' ? 'gated' : 'waits', look: 'warn', text: waits(m) });
  return facts;
}

/** After one of these events, the job is in its queue or with a worker. */
export const sent = ['fired', 'triggered', 'retried', 'enqueued', 'refired'];
