import { inspect } from 'node:util';
import { Cancelled, Discard, HandBack, Kill, RetryIn, Stopping, Timeout, isError, messageOf } from './errors.js';
import type { HandlerOptions } from './handler.js';
import type { Job } from './job.js';
import type { Cause, Failure, Verdict } from './outcome.js';
import type { Fields } from './outbox.js';

type RetryInOption = HandlerOptions['retryIn'];

/** A verdict, and the error that hooks and the log show. */
export interface Judged {
  verdict: Verdict;
  shown: unknown;
}

const CAUSES = 5; // how many causes of an error a log line has

function className(error: unknown): string {
  if (!isError(error)) return 'NotAnError';
  const { name }: { name: unknown } = error;
  return typeof name === 'string' && name !== '' && name !== 'Error' ? name : error.constructor?.name || 'Error';
}

function frames(error: unknown): string[] {
  const { stack } = (error ?? {}) as { stack?: unknown };
  const lines = typeof stack === 'string' ? stack.split('\n') : [];
  return lines.filter((line) => /^\s+at /.test(line)).slice(0, 100).map((line) => line.trim());
}

/** Returns an error as a record describes it. */
const described = (error: unknown): Failure & { backtrace: string[] } => ({ errorClass: className(error), message: messageOf(error), backtrace: frames(error) });

const indented = (lines: string[]): string[] => lines.map((line) => `    ${line}`);

/** Returns the stack of an error and of its causes, for a log. */
export function stackOf(error: unknown): string {
  try {
    const lines = indented(frames(error));
    let { cause } = (error ?? {}) as { cause?: unknown };
    for (let n = 0; n < CAUSES && isError(cause); n++, cause = cause.cause) {
      lines.push(`  caused by ${className(cause)}: ${messageOf(cause)}`, ...indented(frames(cause)));
    }
    return lines.join('\n');
  } catch {
    return ''; // the members of the error throw
  }
}

/** Returns the class, message and stack of an error, for a log. */
export function fieldsOf(error: unknown): Fields {
  try {
    return { errorClass: className(error), error: messageOf(error), stack: stackOf(error) };
  } catch {
    return { errorClass: 'Unreadable', error: 'what was thrown cannot be read' };
  }
}

/** Returns why a job's signal was aborted, in the words of the engine. */
function causeOf(reason: unknown): Cause | undefined {
  if (reason instanceof Cancelled) return 'cancelled';
  if (reason instanceof Stopping) return 'stopping';
  return reason instanceof Timeout ? 'timeout' : undefined;
}

const LONGEST = 1e10; // s; a time beyond it would be read as one in milliseconds

const isWait = (seconds: unknown): seconds is number => typeof seconds === 'number' && Number.isFinite(seconds) && seconds < LONGEST;

/**
 * Resolves to the seconds that a handler's own backoff returns. If it fails, or does not return
 * seconds, that is reported.
 */
async function ownBackoff(retryIn: RetryInOption, error: unknown, job: Job, report: (fault: unknown) => void): Promise<number | undefined> {
  if (!retryIn) return undefined;
  try {
    const seconds: number | null | undefined = await retryIn(job.retryCount, error, job);
    if (seconds != null && !isWait(seconds)) throw new TypeError(`retryIn returned ${inspect(seconds, { depth: 0 })}, not seconds`);
    return seconds != null && seconds > 0 ? seconds : undefined;
  } catch (fault) {
    report(fault);
    return undefined;
  }
}

/** Returns the error that a record and hooks show for a thrown value. */
function shownError(error: unknown, job: Job, cause: Cause | undefined): unknown {
  if (error instanceof Kill || error instanceof RetryIn) return isError(error.cause) ? error.cause : error;
  if (cause !== 'timeout' || error instanceof Discard) return error;
  const timeout = job.cause as Timeout;
  if (error !== timeout) timeout.cause = error;
  return timeout;
}

async function judged(error: unknown, job: Job, retryIn: RetryInOption, report: (fault: unknown) => void): Promise<Judged> {
  const cause = causeOf(job.cause);
  const shown = shownError(error, job, cause);
  const verdict = { cause, ...described(shown) };
  if (error instanceof Discard) return { shown, verdict: { kind: 'discard', cause, message: verdict.message } };
  if (error instanceof Kill) {
    return { shown, verdict: { ...verdict, kind: 'kill', ...(shown === error && { errorClass: 'Killed' }) } };
  }
  if (cause === 'timeout') return { shown, verdict: { ...verdict, kind: 'fail', backtrace: frames(error) } };
  if (error instanceof HandBack) return { shown, verdict: { ...verdict, kind: 'hand_back' } };
  const after = error instanceof RetryIn ? (isWait(error.seconds) ? Math.max(error.seconds, 0) : undefined) : await ownBackoff(retryIn, error, job, report);
  return { shown, verdict: { ...verdict, kind: 'fail', after } };
}

/**
 * Returns the verdict on a handler that threw, for the engine, and the error to show. It accepts
 * any thrown value, and never throws. A fault of the handler's own backoff goes to `report`.
 */
export async function verdictOf(
  error: unknown, job: Job, retryIn?: RetryInOption, report: (fault: unknown) => void = () => {},
): Promise<Judged> {
  try {
    return await judged(error, job, retryIn, report);
  } catch {
    return { shown: error, verdict: { kind: 'fail', errorClass: 'Unreadable', message: 'what was thrown cannot be read', backtrace: [] } };
  }
}
