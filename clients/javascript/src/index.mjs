/** The same classes for `import`: a program that imports and one of its modules that requires have one Discard, not two. */
import millrace from './index.js';

export const {
  Cancelled, Client, Discard, HandBack, Incomplete, Invalid, Job, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed,
  Unreachable, Worker,
} = millrace;
