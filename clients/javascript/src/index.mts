/** The same classes for `import`: a program that imports and one of its modules that requires have one Discard, not two. */
export {
  ApiError, BulkError, Cancelled, Client, Closed, Discard, HandBack, Inspector, Invalid, Job, Kill, MillraceError, NotFound, RetryIn, Refused,
  Stopping, Timeout, Unconfirmed, Unreachable, Worker, defineJob,
} from './index.js';
export type * from './index.js';
