/** Millrace for Node: enqueue jobs with a Client, run them with a Worker. */

/** What JSON can say. A bigint is written as a number. */
export type Json = string | number | bigint | boolean | null | undefined | Date | Json[] | { [name: string]: Json };

/** What may be said of a job beside its class and args. */
export interface JobOptions {
  /** Default "default". */
  queue?: string;
  /** How often at most it is retried: true is 25, false is 0. Default 25. */
  retry?: number | boolean;
  /** 0 to 10, the highest first. */
  priority?: number;
  /** To find jobs by. */
  tags?: string[];
  /** Default: 16 random bytes in hex. */
  jid?: string;
  /** A job that has not begun by then becomes a dead job. */
  expiresAt?: Date;
  /** How many seconds it may run. */
  timeout?: number;
  /** false: do not keep it in the dead set when it is given up. */
  dead?: boolean;
  /** How many lines of a failure's stack are kept; true is 100. */
  backtrace?: number | boolean;
  /** Members of your own. */
  fields?: { [name: string]: Json };
  /** W3C trace context. */
  traceparent?: string;
}

export interface PublishOptions extends JobOptions {
  /** Seconds until the publish fails if it is not answered. Default: the client's timeout. */
  deadline?: number;
}

/** A job that is to be enqueued. */
export interface NewJob {
  class: string;
  args?: Json[];
  options?: JobOptions;
  /** When it is due; at once if not given. */
  at?: Date;
}

/** Wraps each publish. It may change the job; if it does not call next, nothing is published and the jid is null. */
export type ClientMiddleware = (job: NewJob, next: () => Promise<string | null>) => Promise<string | null> | string | null;

export interface ClientOptions {
  /** amqp://user:password@host:port/vhost, or amqps://; of a cluster amqp://user:password@a,b/vhost, or an array of URLs. */
  url: string | string[];
  /** Seconds that a publish may take. Default 30. */
  timeout?: number;
}

/** Enqueues jobs. It connects when it has to, and connects again when a connection is lost. */
export class Client {
  constructor(options: ClientOptions);
  /** Adds middleware; the first is the outermost. */
  use(middleware: ClientMiddleware): this;
  /** Publishes a job and gives its jid when the broker has confirmed it. Throws Invalid, Refused, Unreachable or Unconfirmed. */
  enqueue(className: string, args?: Json[], options?: PublishOptions): Promise<string | null>;
  /** The same for a job that is due at a time. One in the past is due at once. */
  enqueueAt(at: Date, className: string, args?: Json[], options?: PublishOptions): Promise<string | null>;
  /** The same for a job that is due after so many seconds. */
  enqueueIn(seconds: number, className: string, args?: Json[], options?: PublishOptions): Promise<string | null>;
  /** Publishes many jobs and gives their jids, in order, when all are answered. Throws Incomplete if some were not enqueued. */
  enqueueBulk(jobs: NewJob[], options?: { deadline?: number }): Promise<(string | null)[]>;
  /** Ends the connection. Publishes that wait for an answer fail. */
  close(): Promise<void>;
}

/** What a handler works on. */
export class Job {
  private constructor();
  readonly jid: string;
  readonly class: string;
  /** The queue that it came from. */
  readonly queue: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** How often it failed. */
  readonly retryCount: number;
  readonly priority: number;
  readonly tags: string[];
  /** Of the message. */
  readonly headers: { [name: string]: unknown };
  /** As JSON.parse reads them: integers beyond 2⁵³ lose digits, see rawArgs. */
  readonly args: any;
  /** The args as they are spelled, a JSON text for each: BigInt(job.rawArgs[0]). */
  readonly rawArgs: string[];
  /** The job byte for byte. */
  readonly raw: Buffer;
  /** Aborted when the worker begins to stop. The job may go on until `cancelled` is aborted, at the end of the stop timeout. */
  readonly stopping: AbortSignal;
  /** Aborted when the job has to end. Its reason is a Timeout, a Cancelled or a Stopping. */
  readonly cancelled: AbortSignal;
  readonly traceparent: string | undefined;
}

/** What it returns or resolves to is ignored; what it throws is the job's failure. */
export type Handler = (job: Job) => unknown;

export interface HandlerOptions {
  /** Seconds until a failed job is tried again; nothing, or less than 0, for the usual backoff. */
  retryIn?: (count: number, error: any, job: Job) => number | undefined | Promise<number | undefined>;
  /** Seconds that a job may run that does not say so itself. */
  timeout?: number;
}

/** An array is strict: a queue's jobs begin only when none of an earlier one is at hand. An object is weighted. */
export type Queues = string[] | { [queue: string]: number };

/** Queues with slots of their own. */
export interface Lane {
  name: string;
  queues: Queues;
  /** Default 5. */
  concurrency?: number;
}

export interface Logger {
  info(text: string, fields?: object): void;
  warn(text: string, fields?: object): void;
  error(text: string, fields?: object): void;
}

export interface WorkerOptions {
  /** amqp://user:password@host:port/vhost, or amqps://; of a cluster amqp://user:password@a,b/vhost, or an array of URLs. */
  url: string | string[];
  /** Of the lane "default". Default ["default"] if there are no lanes. */
  queues?: Queues;
  /** How many jobs run at once. Default 5. */
  concurrency?: number;
  lanes?: Lane[];
  /** Part of the worker's identity. */
  tag?: string;
  /** Shown with the worker. */
  labels?: { [name: string]: string };
  /** Seconds that jobs have to end when the worker stops. Default 25. */
  stopTimeout?: number;
  /** A job that killed so many workers is given up. Default 3; 0: never. */
  maxDeaths?: number;
  /** Of your program. */
  version?: string;
  /** Whether queues that do not exist are declared. Default true. */
  declare?: boolean;
  /** Seconds between heartbeats. Default 10. */
  heartbeat?: number;
  /** Default: the console, for warnings and errors. */
  logger?: Logger;
  /** The file made of `millrace/thread`, where a bundle has it under another name than millrace-thread.js beside itself. */
  thread?: string | URL;
}

/** Wraps all handlers. What it throws is the job's failure. */
export type WorkerMiddleware = (job: Job, next: () => Promise<unknown>) => unknown;

/** Runs jobs: handlers in the thread that calls run(), the broker's connection in another. */
export class Worker {
  constructor(options: WorkerOptions);
  /** Registers the handler of a class, before run(). */
  handle(className: string, handler: Handler, options?: HandlerOptions): this;
  /** Adds middleware, before run(); the first is the outermost. */
  use(middleware: WorkerMiddleware): this;
  /** Calls a function when the worker consumes for the first time, is quiet, or has handed over everything. */
  on(hook: 'startup' | 'quiet' | 'shutdown', call: () => unknown): this;
  /** Calls a function when a job was given up. */
  on(hook: 'death', call: (job: Job, error: any) => unknown): this;
  /** Takes no more jobs. What runs goes on. */
  quiet(): void;
  /** Ends run() once all jobs have ended, or stopTimeout is over and what still runs was handed back. Twice: do not wait. */
  stop(): void;
  /**
   * Works until it has stopped. With signals, SIGTSTP makes it quiet, and SIGTERM and SIGINT stop it. Throws if the broker turns the
   * worker away at its first attempt; everything else is tried again.
   */
  run(options?: { signals?: boolean }): Promise<void>;
}

/** The base of all errors of this library. */
export class MillraceError extends Error {}
/** The job breaks a rule. Nothing was sent. */
export class Invalid extends MillraceError {}
/** The broker said no: the queue is full or down, or there is none and no sidecar to make it. */
export class Refused extends MillraceError {}
/** There was no connection until the deadline. Nothing was sent. */
export class Unreachable extends MillraceError {}
/** It was sent, and the deadline passed without an answer. It may have arrived. */
export class Unconfirmed extends MillraceError {}
/** Some jobs of a bulk were not enqueued. */
export class Incomplete extends MillraceError {
  private constructor();
  /** What became of each, in order. */
  readonly results: ({ jid: string | null; error?: undefined } | { error: Error; jid?: undefined })[];
}
/** Thrown by a handler: drop the job, without retry and dead job. */
export class Discard extends MillraceError {}
/** Thrown by a handler: give the job up at once. The dead job shows the reason, or the error given. */
export class Kill extends MillraceError {
  constructor(reason: string | Error);
}
/** Thrown by a handler: the job has failed, and is to be tried again after so many seconds. */
export class RetryIn extends MillraceError {
  constructor(seconds: number, error?: unknown);
  readonly seconds: number;
}
/** Thrown by a handler because the worker is stopping: the job goes back to its queue as it came. */
export class HandBack extends MillraceError {}
/** The reason of `job.cancelled` when the job's time is over. */
export class Timeout extends MillraceError {
  private constructor();
}
/** The reason of `job.cancelled` when somebody cancelled the job. */
export class Cancelled extends MillraceError {
  private constructor();
}
/** The reason of `job.stopping`, and of `job.cancelled` when the stop timeout is over. */
export class Stopping extends MillraceError {
  private constructor();
}
