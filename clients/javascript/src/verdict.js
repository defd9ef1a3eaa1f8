'use strict';

const { inspect } = require('node:util');
const { Cancelled, Discard, HandBack, Kill, RetryIn, Stopping, Timeout, isError } = require('./errors.js');

const CAUSES = 5; // how many causes of an error a log line has

function className(error) {
  if (!isError(error)) return 'NotAnError';
  const { name } = error;
  return typeof name === 'string' && name !== '' && name !== 'Error' ? name : error.constructor?.name || 'Error';
}

function frames(error) {
  const lines = typeof error?.stack === 'string' ? error.stack.split('\n') : [];
  return lines.filter((line) => /^\s+at /.test(line)).slice(0, 100).map((line) => line.trim());
}

const messageOf = (error) => (isError(error) ? String(error.message) : inspect(error, { depth: 1 }));

/** What a record says of an error. */
const described = (error) => ({ errorClass: className(error), message: messageOf(error), backtrace: frames(error) });

const indented = (lines) => lines.map((line) => `    ${line}`);

/** The stack of an error and of its causes, for a log. */
function stackOf(error) {
  try {
    const lines = indented(frames(error));
    for (let [n, cause] = [0, error?.cause]; n < CAUSES && isError(cause); [n, cause] = [n + 1, cause.cause]) {
      lines.push(`  caused by ${className(cause)}: ${messageOf(cause)}`, ...indented(frames(cause)));
    }
    return lines.join('\n');
  } catch {
    return ''; // an error whose members throw
  }
}

/** An error in one line, for a log. */
function textOf(error) {
  try {
    return `${className(error)}: ${messageOf(error)}`;
  } catch {
    return 'what was thrown cannot be read';
  }
}

/** Why a job's signal was set, as the engine calls it. */
function causeOf(reason) {
  if (reason instanceof Cancelled) return 'cancelled';
  if (reason instanceof Stopping) return 'stopping';
  return reason instanceof Timeout ? 'timeout' : undefined;
}

const isWait = (seconds) => typeof seconds === 'number' && Number.isFinite(seconds);

/** The seconds that a handler's own backoff returns. If it fails, or returns something else than seconds, that is reported. */
async function ownBackoff(retryIn, error, job, report) {
  if (!retryIn) return undefined;
  try {
    const seconds = await retryIn(job.retryCount, error, job);
    if (seconds != null && !isWait(seconds)) throw new TypeError(`retryIn returned ${inspect(seconds, { depth: 0 })}, not seconds`);
    return seconds > 0 ? seconds : undefined;
  } catch (fault) {
    report(fault);
    return undefined;
  }
}

/** The error that a record and hooks show of one that was thrown. */
function shownError(error, job, cause) {
  if (error instanceof Kill || error instanceof RetryIn) return isError(error.cause) ? error.cause : error;
  if (cause !== 'timeout' || error instanceof Discard) return error;
  const timeout = job.cause;
  if (error !== timeout) timeout.cause = error;
  return timeout;
}

async function judged(error, job, retryIn, report) {
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
 * What the engine needs to know of a handler that threw, and the error to show. Anything may have been thrown: this ends well. A fault of
 * the handler's own backoff goes to report.
 */
async function verdictOf(error, job, retryIn, report = () => {}) {
  try {
    return await judged(error, job, retryIn, report);
  } catch {
    return { shown: error, verdict: { kind: 'fail', errorClass: 'Unreadable', message: 'what was thrown cannot be read', backtrace: [] } };
  }
}

module.exports = { stackOf, textOf, verdictOf };
