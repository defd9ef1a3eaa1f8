/**
 * The same classes for `import`. So a program that uses `import`, with a module that uses
 * `require`, has one class Discard and not two.
 */
export {
  ApiError, BulkError, Cancelled, Client, Closed, Discard, HandBack, Inspector, Invalid, Job, Kill, MillraceError, NotFound, RetryIn, Refused,
  Stopping, Timeout, Unconfirmed, Undecided, Unreachable, Worker, defineJob,
} from './index.js';
export type * from './index.js';
