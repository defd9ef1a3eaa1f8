import { inspect } from 'node:util';
import { isNativeError } from 'node:util/types';

/** Whether it is an Error, also one of another realm, as Jest and node:vm have. */
export const isError = (value: unknown): value is Error => value instanceof Error || isNativeError(value);

/** The message of what was thrown, or what it is, if it is no Error. */
export const messageOf = (error: unknown): string => (isError(error) ? String(error.message) : inspect(error, { depth: 1 }));

/** What can go wrong with a publish, and what a handler throws to say what is to become of its job. */

/** The base of all errors of this library. */
export class MillraceError extends Error {
  static {
    // The name of each class is that of its errors. The compiler takes no getter in its place, for Error declares a property.
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
/** The broker refused the job: its queue is full or down, or there is none and no sidecar to declare it. */
export class Refused extends MillraceError {}
/** There was no connection until the deadline. The broker does not have the job. */
export class Unreachable extends MillraceError {}
/** The client was closed. The broker does not have the job. */
export class Closed extends MillraceError {}
/** It was sent, and no answer came before the deadline, or before the client was closed. It may have arrived. */
export class Unconfirmed extends MillraceError {
  /** Of the job: enqueue it again with this jid, or look it up. */
  readonly jid: string;

  constructor(message: string, jid: string, options?: { cause?: unknown }) {
    super(message, options);
    this.jid = jid;
  }
}
/** What became of a job of a bulk: its jid, or the error. */
export type BulkResult = { jid: string | null; error?: undefined } | { error: Error; jid?: undefined };

/** Some jobs of a bulk were not enqueued. */
export class BulkError extends MillraceError {
  /** What became of each, in order. */
  readonly results: BulkResult[];

  constructor(results: BulkResult[]) {
    const failed = results.flatMap(({ error }) => (error ? [error] : []));
    super(`${failed.length} of ${results.length} jobs were not enqueued: ${failed[0]?.message}`, { cause: failed[0] });
    this.results = results;
  }
}

/** What a sidecar answered in place of what an Inspector asked for. */
export class ApiError extends MillraceError {
  /** Of HTTP. */
  readonly status: number;
  /** What a program branches on: conflict, access_refused. */
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

/** Thrown by a handler: drop the job, without retry and dead job. */
export class Discard extends MillraceError {}

/** Thrown by a handler: give the job up at once. It becomes a dead job, which shows the reason, or the error given. */
export class Kill extends MillraceError {
  constructor(reason: string | Error) {
    super(isError(reason) ? reason.message : String(reason), isError(reason) ? { cause: reason } : undefined);
  }
}

/** Thrown by a handler: the job has failed, and is to be tried again after so many seconds. */
export class RetryIn extends MillraceError {
  readonly seconds: number;

  constructor(seconds: number, error?: unknown) {
    super(isError(error) ? error.message : String(error ?? `to be tried again in ${seconds} s`), { cause: error });
    this.seconds = seconds;
  }
}

/** Thrown by a handler because the worker is stopping: the job goes back to its queue as it came. */
export class HandBack extends MillraceError {
  constructor(message: string = 'handed back by a worker that is not stopping') {
    super(message);
  }
}

/** The reason of `job.cancelled` when the job's time is over; then it is the job's failure. */
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
