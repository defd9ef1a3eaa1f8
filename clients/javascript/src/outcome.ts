import { DEAD, MAX_RECORD, RETRIES, seconds } from './format.js';
import type { Delivered } from './parse.js';
import { withQueue } from './scan.js';

/** A failure, as a record describes it. */
export interface Failure {
  errorClass: string;
  message: string;
  backtrace?: string[] | undefined;
}

/** Why a job's signal was aborted. */
export type Cause = 'cancelled' | 'stopping' | 'timeout';

/** The result of a handler. `after` is the number of seconds that it asked for. */
export type Verdict =
  | { kind: 'success'; cause?: undefined }
  | { kind: 'discard'; cause?: Cause | undefined; message: string }
  | (Failure & { kind: 'kill' | 'hand_back' | 'fail'; cause?: Cause | undefined; after?: number | undefined });

/**
 * The outcome of a job: the answer to its delivery, the record before it, and the facts for the
 * log, the hooks and the metrics.
 */
export interface Outcome {
  then: 'ack' | 'reject' | 'requeue';
  stream?: string;
  record?: Buffer;
  status?: 'success' | 'failed' | 'dead' | 'discarded' | 'expired';
  errorClass?: string;
  /** The error for which the job was given up. */
  died?: Failure | undefined;
  /** The next step; undefined for a job that ended well. */
  next?: Next;
  failed?: boolean;
  reason?: string;
  after?: number;
  due?: number;
  error?: Failure;
}

export type Next = 'retry' | 'dead' | 'discarded' | 'handed_back';

const HUNDRED_YEARS = 100 * 365 * 24 * 3600;

/** Returns the seconds until a job is retried that has failed n times before this failure. */
export function backoff(n: number, random = Math.random): number {
  return Math.min(n ** 4 + 15 + Math.floor(random() * (30 * (n + 1) + 1)), HUNDRED_YEARS);
}

function firstCharacters(text: string, n: number): string {
  if (text.length <= n) return text;
  let end = 0;
  for (let left = n; left > 0 && end < text.length; left--) end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  return text.slice(0, end);
}

function firstBytes(text: string, n: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= n) return text;
  while ((bytes[n]! & 0xc0) === 0x80) n--;
  return bytes.toString('utf8', 0, n);
}

/** Returns the members of a record that describe a failure. */
function failure(job: Delivered, { errorClass, message, backtrace = [] }: Failure): Record<string, string> {
  const lines = backtrace.slice(0, job.backtrace).join('\n').toWellFormed();
  return {
    error_class: firstBytes(errorClass.toWellFormed(), 1024),
    error_message: firstCharacters(message.toWellFormed(), 10_000),
    ...(lines && { backtrace: lines }),
  };
}

/** Returns the head of a record with the job's own bytes. */
const around = (job: Delivered, head: object): Buffer => Buffer.from(`${JSON.stringify(head).slice(0, -1)},"job":${withQueue(job.text, job.queue)}}`);

function retryRecord(job: Delivered, error: Failure, now: number, after: number): Buffer {
  return around(job, {
    type: 'retry', jid: job.jid, retry_at: seconds(now + after * 1000), retry_count: job.retryCount + 1, failed_at: seconds(now),
    ...failure(job, error),
  });
}

function deadRecord(job: Delivered, error: Failure, reason: string, now: number): Buffer {
  return around(job, { type: 'dead_job', jid: job.jid, died_at: seconds(now), retry_count: job.retryCount, ...failure(job, error), reason });
}

/**
 * If the record is too large to be read, returns a rejection: the sidecar makes a dead job of it,
 * shortened.
 */
function sized(outcome: Outcome & { record: Buffer }): Outcome {
  if (outcome.record.length <= MAX_RECORD) return outcome;
  const { errorClass, died, failed, error } = outcome;
  return { then: 'reject', status: 'dead', errorClass, died, failed, error, next: 'dead', reason: 'rejected' };
}

function retry(job: Delivered, error: Failure, now: number, after: number): Outcome {
  const record = retryRecord(job, error, now, after);
  const end: Partial<Outcome> = { next: 'retry', failed: true, error, after, due: now + after * 1000 };
  return sized({ then: 'ack', stream: RETRIES, record, status: 'failed', errorClass: error.errorClass, ...end });
}

function bury(job: Delivered, error: Failure, reason: string, now: number): Outcome {
  const record = deadRecord(job, error, reason, now);
  const end: Partial<Outcome> = { next: 'dead', failed: reason === 'exhausted' || reason === 'killed', error, reason };
  return sized({ then: 'ack', stream: DEAD, record, status: 'dead', errorClass: error.errorClass, died: error, ...end });
}

function exhaust(job: Delivered, error: Failure, now: number): Outcome {
  if (job.dead) return bury(job, error, 'exhausted', now);
  const end: Partial<Outcome> = { next: 'discarded', failed: true, error, reason: 'exhausted' };
  return { then: 'ack', status: 'discarded', errorClass: error.errorClass, died: error, ...end };
}

const discard = (reason: string): Outcome => ({ then: 'ack', status: 'discarded', next: 'discarded', failed: false, reason });

/** Returns the outcome of a job whose handler has ended. */
export function judge(job: Delivered, verdict: Verdict, { now = Date.now(), stopping = false } = {}): Outcome {
  const { kind, cause } = verdict;
  if (kind === 'success') return { then: 'ack', status: 'success' };
  if (kind === 'discard') return discard(verdict.message);
  if (kind === 'kill') return bury(job, verdict, 'killed', now);
  if (stopping && (kind === 'hand_back' || cause === 'stopping')) return { then: 'requeue', next: 'handed_back', failed: false };
  if (cause === 'cancelled') return discard('cancelled');
  if (job.retryCount >= job.retry) return exhaust(job, verdict, now);
  return retry(job, verdict, now, verdict.after ?? backoff(job.retryCount));
}

export const unknownClass = (name: string): Verdict & Failure => ({ kind: 'fail', errorClass: 'UnknownClass', message: `no handler for class ${name}` });

/** Returns the outcome of a job that expired before it began. */
export function expire(job: Delivered, now = Date.now()): Outcome {
  const error = { errorClass: 'expired', message: 'expired before it began' };
  if (!job.dead) return { ...discard('expired'), status: 'expired', errorClass: 'expired' };
  return { ...bury(job, error, 'expired', now), status: 'expired', died: undefined };
}

/** Returns the outcome of a job that killed too many workers. */
export function poisoned(job: Delivered, deaths: number, now = Date.now()): Outcome {
  return bury(job, { errorClass: 'poison', message: `its worker died ${deaths} times while it ran` }, 'poison', now);
}
