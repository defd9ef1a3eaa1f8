/** Test helpers that need no broker. They run the handlers, middleware and hooks of a worker. */
import type { Client, ClientMiddleware, Job, JobDefinition, NewJob, Worker } from './index.js';

/** A job that was enqueued and has not run. */
export interface Enqueued {
  jid: string;
  class: string;
  args: any;
  queue: string;
  /** The number of the attempt that comes next. */
  attempt: number;
  /** When it is due, if it is scheduled. */
  at?: Date;
  /** The job as it would be published. */
  raw: Buffer;
}

/** A job that failed. */
export interface Failed extends Enqueued {
  error: any;
}

declare class Offline implements Pick<Client, 'enqueue' | 'enqueueAt' | 'enqueueIn' | 'enqueueBulk' | 'close'> {
  /** The worker whose handlers run. A Fake that only collects needs none. */
  constructor(worker?: Worker);
  /** Adds middleware around publishes. */
  use(middleware: ClientMiddleware): this;
  enqueue: Client['enqueue'];
  enqueueAt: Client['enqueueAt'];
  enqueueIn: Client['enqueueIn'];
  enqueueBulk: Client['enqueueBulk'];
  close(): Promise<void>;
}

/** In place of a Client: enqueue makes the first attempt at once, and the error of one that fails is the caller's. */
export class Inline extends Offline {
  constructor(worker: Worker);
}

/** In place of a Client: enqueue collects, and drain runs. */
export class Fake extends Offline {
  /** What was enqueued and has not run, in order; of one class, if named. */
  jobs(job?: string | JobDefinition): Enqueued[];
  /** Jobs that failed and wait for their next attempt. */
  retries(job?: string | JobDefinition): (Failed & { retryIn: number })[];
  /** Jobs that were given up. */
  dead(job?: string | JobDefinition): Failed[];
  /**
   * Runs what is there, and what that enqueues, and resolves to how many attempts that were. With `retries`, failed jobs are tried again at once
   * until they end well or are given up. All jobs run; then it rejects with the error of the one that failed, or with an AggregateError.
   */
  drain(options?: { retries?: boolean }): Promise<number>;
  /** Cancels the job that runs, if it has this jid, as an operator would. */
  cancel(jid: string): boolean;
  /** Forgets all jobs. */
  clear(): void;
}

/** One attempt at a job. It ends as it would in a worker, with its timeout and hooks. */
export class Attempt {
  /** `attempt` is its number: 1, the default, is the first. */
  constructor(worker: Worker, job: NewJob, options?: { attempt?: number });
  /** The job as its handler gets it. */
  readonly job: Job;
  /** Cancels the job, before it runs or while it does. */
  cancel(): this;
  /** Stops the worker, before the job runs or while it does. */
  stop(): this;
  run(): Promise<Result>;
}

/** How an attempt ended. */
export interface Result {
  status: 'success' | 'retry' | 'dead' | 'discarded' | 'handed_back';
  /** Whether it counts as a failure. */
  failed: boolean;
  error?: any;
  /** Seconds until the next attempt. */
  retryIn?: number;
}
