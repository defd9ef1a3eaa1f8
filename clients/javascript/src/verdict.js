'use strict';

const { inspect } = require('node:util');
const { Cancelled, Discard, HandBack, Kill, RetryIn, Stopping, Timeout } = require('./errors.js');

function className(error) {
  if (!(error instanceof Error)) return 'NotAnError';
  const { name } = error;
  return typeof name === 'string' && name !== '' && name !== 'Error' ? name : error.constructor?.name || 'Error';
}

function frames(error) {
  const lines = typeof error?.stack === 'string' ? error.stack.split('\n') : [];
  return lines.filter((line) => /^\s+at /.test(line)).slice(0, 100).map((line) => line.trim());
}

/** What a record says of whatever was thrown. */
function described(error) {
  const message = error instanceof Error ? String(error.message) : inspect(error, { depth: 1 });
  return { errorClass: className(error), message, backtrace: frames(error) };
}

/** Why a job's signal was set, as the engine calls it. */
function causeOf(reason) {
  if (reason instanceof Cancelled) return 'cancelled';
  if (reason instanceof Stopping) return 'stopping';
  return reason instanceof Timeout ? 'timeout' : undefined;
}

const isWait = (seconds) => typeof seconds === 'number' && Number.isFinite(seconds);

/** The seconds that a handler's own backoff says, if it says any that make sense. */
async function ownBackoff(retryIn, error, job) {
  if (!retryIn) return undefined;
  try {
    const seconds = await retryIn(job.retryCount, error, job);
    return isWait(seconds) && seconds > 0 ? seconds : undefined;
  } catch {
    return undefined;
  }
}

async function judged(error, job, retryIn) {
  const cause = causeOf(job.cause);
  if (error instanceof Discard) return { kind: 'discard', cause };
  if (error instanceof Kill) {
    const shown = error.cause instanceof Error ? described(error.cause) : { ...described(error), errorClass: 'Killed' };
    return { kind: 'kill', cause, ...shown };
  }
  if (cause === 'timeout') return { kind: 'fail', cause, ...described(job.cause), backtrace: frames(error) };
  if (error instanceof HandBack) return { kind: 'hand_back', cause, ...described(error) };
  if (error instanceof RetryIn) {
    const after = isWait(error.seconds) ? Math.max(error.seconds, 0) : undefined;
    return { kind: 'fail', cause, ...described(error.cause instanceof Error ? error.cause : error), after };
  }
  return { kind: 'fail', cause, ...described(error), after: await ownBackoff(retryIn, error, job) };
}

/** What the engine is told of a handler that threw. Whatever was thrown, this ends well. */
async function verdictOf(error, job, retryIn) {
  try {
    return await judged(error, job, retryIn);
  } catch {
    return { kind: 'fail', errorClass: 'Unreadable', message: 'what was thrown cannot be read', backtrace: [] };
  }
}

module.exports = { verdictOf };
