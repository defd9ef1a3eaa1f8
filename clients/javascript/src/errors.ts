import { inspect } from 'node:util';
import { isNativeError } from 'node:util/types';

/** Returns whether a value is an Error, also one of another realm, as in Jest and node:vm. */
export const isError = (value: unknown): value is Error => value instanceof Error || isNativeError(value);

/** Returns the message of an Error, or a description of any other thrown value. */
export const messageOf = (error: unknown): string => (isError(error) ? String(error.message) : inspect(error, { depth: 1 }));

/** Errors of a publish, and errors with which a handler decides the outcome of its job. */

/** The base of all errors of this library. */
export class MillraceError extends Error {
  static {
    // The `name` of each error is that of its class. A getter does not compile, because Error
    // declares a property.
    Object.defineProperty(this.prototype, 'name', {
      get(this: object) {
        return this.constructor.name;
      },
      configurable: true,
    });
  }
}

/** The job breaks a rule. Nothing was sent. */
export class Invalid extends MillraceError {}
/**
 * The broker does not take the job. Its queue is full or down, or does not exist and no sidecar can
 * declare it.
 */
export class Refused extends MillraceError {}
/** There was no connection before the deadline. The broker does not have the job. */
export class Unreachable extends MillraceError {}
/** The client was closed. The broker does not have the job. */
export class Closed extends MillraceError {}
/**
 * The job was sent, and no answer came before the deadline or before the client was closed. The job
 * may have arrived.
 */
export class Unconfirmed extends MillraceError {
  /** The job's jid. Enqueue the job again with it, or look it up. */
  readonly jid: string;

  constructor(message: string, jid: string, options?: { cause?: unknown }) {
    super(message, options);
    this.jid = jid;
  }
}
/**
 * A unique job is published, and no leader has said whether it is a duplicate. A leader decides about
 * it later. Do not enqueue it again.
 */
export class Undecided extends MillraceError {
  /** The job's jid. */
  readonly jid: string;

  constructor(message: string, jid: string, options?: { cause?: unknown }) {
    super(message, options);
    this.jid = jid;
  }
}
/** The result of a job of a bulk: its jid, or the error. */
export type BulkResult = { jid: string | null; error?: undefined } | { error: Error; jid?: undefined };

/** Some jobs of a bulk were not enqueued. */
export class BulkError extends MillraceError {
  /** The result of each job, in order. */
  readonly results: BulkResult[];

  constructor(results: BulkResult[]) {
    const failed = results.flatMap(({ error }) => (error ? [error] : []));
    super(`${failed.length} of ${results.length} jobs were not enqueued: ${failed[0]?.message}`, { cause: failed[0] });
    this.results = results;
  }
}

/** A sidecar answered an Inspector with an error. */
export class ApiError extends MillraceError {
  /** The HTTP status. */
  readonly status: number;
  /** The code of the error, for programs: conflict, access_refused. */
  readonly code: string;
  readonly reason: string;

  constructor(status: number, code: string, reason: string) {
    super(`${reason} (${status} ${code})`);
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}
/** There is no such job or queue. */
export class NotFound extends ApiError {}

/** Thrown by a handler to drop its job: no retry, and no dead job. */
export class Discard extends MillraceError {}

/**
 * Thrown by a handler to end its job without further attempts. The job becomes a dead job that
 * shows the reason, or the given error.
 */
export class Kill extends MillraceError {
  constructor(reason: string | Error) {
    super(isError(reason) ? reason.message : String(reason), isError(reason) ? { cause: reason } : undefined);
  }
}

/** Thrown by a handler to fail with a given number of seconds until the next attempt. */
export class RetryIn extends MillraceError {
  readonly seconds: number;

  constructor(seconds: number, error?: unknown) {
    super(isError(error) ? error.message : String(error ?? `to be tried again in ${seconds} s`), { cause: error });
    this.seconds = seconds;
  }
}

/** Thrown by a handler because the worker is stopping. The job goes back to its queue unchanged. */
export class HandBack extends MillraceError {
  constructor(message: string = 'handed back by a worker that is not stopping') {
    super(message);
  }
}

/** The reason of `job.cancelled` when the job's timeout is over. It is then the job's failure. */
export class Timeout extends MillraceError {
  constructor(seconds: number) {
    super(`ran longer than ${seconds} s`);
  }
}

/** The reason of `job.cancelled` when the job was cancelled. */
export class Cancelled extends MillraceError {
  constructor() {
    super('the job was cancelled');
  }
}

/** The reason of `job.stopping`, and of `job.cancelled` when the stop timeout is over. */
export class Stopping extends MillraceError {
  constructor() {
    super('the worker is stopping');
  }
}
