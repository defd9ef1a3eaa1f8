/** The same classes for `import`: a program that imports and one of its modules that requires have one Discard, not two. */
import millrace from './index.js';

export const {
  BulkError, Cancelled, Client, Closed, Discard, HandBack, Invalid, Job, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed,
  Unreachable, Worker, defineJob,
} = millrace;
