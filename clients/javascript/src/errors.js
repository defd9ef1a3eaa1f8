'use strict';

const { isNativeError } = require('node:util/types');

/** Whether it is an Error, also one of another realm, as Jest and node:vm have. */
const isError = (value) => value instanceof Error || isNativeError(value);

/** What can go wrong with a publish, and what a handler throws to say what is to become of its job. */

/** The base of all errors of this library. */
class MillraceError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** The job breaks a rule. Nothing was sent. */
class Invalid extends MillraceError {}
/** The broker said no: the queue is full or down, or there is none and no sidecar to make it. */
class Refused extends MillraceError {}
/** There was no connection until the deadline. Nothing was sent. */
class Unreachable extends MillraceError {}
/** The client was closed. Nothing was sent. */
class Closed extends MillraceError {}
/** It was sent, and no answer came. The job may have arrived. `jid` is its id: enqueue it again with that one, or look it up. */
class Unconfirmed extends MillraceError {
  constructor(message, jid, options) {
    super(message, options);
    this.jid = jid;
  }
}
/** Some jobs of a bulk were not enqueued: `results` says which, as {jid} or {error}. */
class BulkError extends MillraceError {
  constructor(results) {
    const failed = results.filter((r) => r.error);
    super(`${failed.length} of ${results.length} jobs were not enqueued: ${failed[0].error.message}`, { cause: failed[0].error });
    this.results = results;
  }
}

/** What a sidecar answered in place of what an Inspector asked for: the status of HTTP, and a code that programs branch on. */
class ApiError extends MillraceError {
  constructor(status, code, reason) {
    super(`${reason} (${status} ${code})`);
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}
/** There is no such job or queue. */
class NotFound extends ApiError {}

/** Thrown by a handler: drop the job, without retry and dead job. */
class Discard extends MillraceError {}

/** Thrown by a handler: give the job up at once. It becomes a dead job, which shows the reason, or the error given. */
class Kill extends MillraceError {
  constructor(reason) {
    super(isError(reason) ? reason.message : String(reason), isError(reason) ? { cause: reason } : undefined);
  }
}

/** Thrown by a handler: the job has failed, and is to be tried again after so many seconds. */
class RetryIn extends MillraceError {
  constructor(seconds, error) {
    super(isError(error) ? error.message : String(error ?? `to be tried again in ${seconds} s`), { cause: error });
    this.seconds = seconds;
  }
}

/** Thrown by a handler because the worker is stopping: the job goes back to its queue as it came. */
class HandBack extends MillraceError {
  constructor(message = 'handed back by a worker that is not stopping') {
    super(message);
  }
}

/** The reason of a job's signal whose time is over, and then its failure. */
class Timeout extends MillraceError {
  constructor(seconds) {
    super(`ran longer than ${seconds} s`);
  }
}

/** The reason of a job's signal: the job was cancelled. */
class Cancelled extends MillraceError {
  constructor() {
    super('the job was cancelled');
  }
}

/** The reason of a job's signal: the worker stops. */
class Stopping extends MillraceError {
  constructor() {
    super('the worker is stopping');
  }
}

module.exports = {
  ApiError, BulkError, Cancelled, Closed, Discard, HandBack, Invalid, Kill, MillraceError, NotFound, RetryIn, Refused, Stopping, Timeout,
  Unconfirmed, Unreachable, isError,
};
