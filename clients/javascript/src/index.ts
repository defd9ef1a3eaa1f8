/**
 * Millrace for Node. A Client enqueues jobs, a Worker runs them, and an Inspector finds and changes
 * them.
 */
export { Client } from './client.js';
export { defineJob } from './define.js';
export {
  ApiError, BulkError, Cancelled, Closed, Discard, HandBack, Invalid, Kill, MillraceError, NotFound, RetryIn, Refused, Stopping, Timeout,
  Unconfirmed, Undecided, Unreachable,
} from './errors.js';
export { Inspector } from './inspector.js';
export { Job } from './job.js';
export { Worker } from './worker.js';
export type { JobDefinition, NewJob } from './define.js';
export type { GovernedQueue } from './governed.js';
export type { Limit } from './limits.js';
export type { DefineOptions, Defined, PeriodicJob } from './periodic.js';
export type { Handler, HandlerOptions, WorkerMiddleware } from './handler.js';
export type { FoundEntry, FoundJob, FoundRun, InspectorOptions, QueueSize } from './inspector.js';
export type {
  ClientMiddleware, ClientOptions, Credentials, Decision, DefinitionOptions, Header, JobOptions, Json, Jsonable, Lane, Logger, Message,
  MessageOptions, MessageProperties, OutgoingJob, Parsed, PublishOptions, Queues, TlsOptions, Unique, UniqueOptions, WorkerOptions,
} from './types.js';
