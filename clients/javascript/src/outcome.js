'use strict';

const { DEAD, MAX_RECORD, RETRIES, seconds } = require('./format.js');
const { withQueue } = require('./scan.js');

const HUNDRED_YEARS = 100 * 365 * 24 * 3600;

/** Seconds until a job is tried again that has failed n times before this one. */
function backoff(n, random = Math.random) {
  return Math.min(n ** 4 + 15 + Math.floor(random() * (30 * (n + 1) + 1)), HUNDRED_YEARS);
}

function firstCharacters(text, n) {
  if (text.length <= n) return text;
  let end = 0;
  for (let left = n; left > 0 && end < text.length; left--) end += text.codePointAt(end) > 0xffff ? 2 : 1;
  return text.slice(0, end);
}

function firstBytes(text, n) {
  const bytes = Buffer.from(text);
  if (bytes.length <= n) return text;
  while ((bytes[n] & 0xc0) === 0x80) n--;
  return bytes.toString('utf8', 0, n);
}

/** What a record says of a failure. */
function failure(job, { errorClass, message, backtrace = [] }) {
  const lines = backtrace.slice(0, job.backtrace).join('\n').toWellFormed();
  return {
    error_class: firstBytes(errorClass.toWellFormed(), 1024),
    error_message: firstCharacters(message.toWellFormed(), 10_000),
    ...(lines && { backtrace: lines }),
  };
}

/** The record around the job's own bytes. */
const around = (job, head) => Buffer.from(`${JSON.stringify(head).slice(0, -1)},"job":${withQueue(job.text, job.queue)}}`);

function retryRecord(job, error, now, after) {
  return around(job, {
    type: 'retry', jid: job.jid, retry_at: seconds(now + after * 1000), retry_count: job.retryCount + 1, failed_at: seconds(now),
    ...failure(job, error),
  });
}

function deadRecord(job, error, reason, now) {
  return around(job, { type: 'dead_job', jid: job.jid, died_at: seconds(now), retry_count: job.retryCount, ...failure(job, error), reason });
}

/** What would be too large to be read is rejected: the sidecar buries it, shortened. */
function sized(outcome) {
  if (outcome.record.length <= MAX_RECORD) return outcome;
  const { errorClass, died, failed, error } = outcome;
  return { then: 'reject', status: 'dead', errorClass, died, failed, error, next: 'dead', reason: 'rejected' };
}

function retry(job, error, now, after) {
  const record = retryRecord(job, error, now, after);
  const end = { next: 'retry', failed: true, error, after, due: now + after * 1000 };
  return sized({ then: 'ack', stream: RETRIES, record, status: 'failed', errorClass: error.errorClass, ...end });
}

function bury(job, error, reason, now) {
  const record = deadRecord(job, error, reason, now);
  const end = { next: 'dead', failed: reason === 'exhausted' || reason === 'killed', error, reason };
  return sized({ then: 'ack', stream: DEAD, record, status: 'dead', errorClass: error.errorClass, died: error, ...end });
}

function exhaust(job, error, now) {
  if (job.dead) return bury(job, error, 'exhausted', now);
  const end = { next: 'discarded', failed: true, error, reason: 'exhausted' };
  return { then: 'ack', status: 'discarded', errorClass: error.errorClass, died: error, ...end };
}

const discard = (reason) => ({ then: 'ack', status: 'discarded', next: 'discarded', failed: false, reason });

/**
 * Says what becomes of a job whose handler has ended: how its delivery is answered, after which record, and for the log and hooks what comes
 * next, why, and whether this attempt failed. A verdict is {kind, errorClass, message, backtrace, after, cause}: kind one of
 * success, discard, kill, hand_back, fail; after the seconds that the handler asked for; cause why its signal was set, if it was.
 */
function judge(job, verdict, { now = Date.now(), stopping = false } = {}) {
  const { kind, cause } = verdict;
  if (kind === 'success') return { then: 'ack', status: 'success' };
  if (kind === 'discard') return discard(verdict.message);
  if (kind === 'kill') return bury(job, verdict, 'killed', now);
  if (stopping && (kind === 'hand_back' || cause === 'stopping')) return { then: 'requeue', next: 'handed_back', failed: false };
  if (cause === 'cancelled') return discard('cancelled');
  if (job.retryCount >= job.retry) return exhaust(job, verdict, now);
  return retry(job, verdict, now, verdict.after ?? backoff(job.retryCount));
}

const unknownClass = (name) => ({ kind: 'fail', errorClass: 'UnknownClass', message: `no handler for class ${name}` });

/** The outcome of a job that is past its time before it begins. */
function expire(job, now = Date.now()) {
  const error = { errorClass: 'expired', message: 'expired before it began' };
  if (!job.dead) return { ...discard('expired'), status: 'expired', errorClass: 'expired' };
  return { ...bury(job, error, 'expired', now), status: 'expired', died: undefined };
}

/** The outcome of a job that killed too many workers. */
function poisoned(job, deaths, now = Date.now()) {
  return bury(job, { errorClass: 'poison', message: `its worker died ${deaths} times while it ran` }, 'poison', now);
}

module.exports = { backoff, judge, unknownClass, expire, poisoned };
