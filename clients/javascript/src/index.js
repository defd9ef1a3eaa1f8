/** Millrace for Node: enqueue jobs with a Client, run them with a Worker. */
export { Client } from './client.js';
export {
  Cancelled, Discard, HandBack, Incomplete, Invalid, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed, Unreachable,
} from './errors.js';
export { Job } from './job.js';
export { Worker } from './worker.js';
