/** Millrace for Node: enqueue jobs with a Client, run them with a Worker. */
import type { ConnectionOptions, SecureContextOptions } from 'node:tls';

/** What can be written as JSON: a bigint becomes a number, a Date text. */
export type Json = string | number | bigint | boolean | null | Date | readonly Json[] | { readonly [name: string]: Json | undefined };

/** T, if all of it can be written as JSON; where it cannot, never. T may be an interface. */
export type Jsonable<T> = T extends string | number | bigint | boolean | null | Date | { toJSON(): unknown }
  ? T
  : T extends
        | undefined | symbol | ((...args: never[]) => unknown) | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | Promise<unknown> | RegExp
        | ArrayBuffer | ArrayBufferView
    ? never
    : T extends readonly unknown[]
      ? { [K in keyof T]: Jsonable<T[K]> }
      : T extends object
        ? { [K in keyof T]: undefined extends T[K] ? Jsonable<Exclude<T[K], undefined>> | undefined : Jsonable<T[K]> }
        : never;

/** What a handler gets of T, which was written as JSON and read again: a Date is text, a bigint a number. */
export type Parsed<T> = 0 extends 1 & T
  ? any
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint
      ? number
      : T extends { toJSON(): infer J }
        ? Parsed<J>
        : T extends object
          ? { [K in keyof T]: Parsed<T[K]> }
          : unknown;

/** The options of a job. */
export interface JobOptions {
  /** Default "default". */
  queue?: string;
  /** How often at most it is retried: true is 25, false is 0. Default 25. */
  retry?: number | boolean;
  /** 0 to 10, the highest first. */
  priority?: number;
  /** To find jobs by. */
  tags?: readonly string[];
  /** Default: 16 random bytes in hex. */
  jid?: string;
  /** A job that has not begun by then becomes a dead job. */
  expiresAt?: Date;
  /** How many seconds it may run. */
  timeout?: number;
  /** false: do not keep it in the dead set when it is given up. */
  dead?: boolean;
  /** How many lines of a failure's stack are kept: 20 by default; true is 100, false or 0 none. */
  backtrace?: number | boolean;
  /** Members of your own, which handlers read as `job.fields`. */
  fields?: { readonly [name: string]: Json | undefined };
  /** W3C trace context. */
  traceparent?: string;
}

export interface PublishOptions extends JobOptions {
  /** Seconds until the publish fails if it is not answered. Default: the client's timeout. */
  deadline?: number;
}

/** The options that a definition gives all jobs of its class. */
export type DefinitionOptions = Omit<JobOptions, 'jid'>;

declare const ARGS: unique symbol;

/** A class of jobs with typed args and options of its own: see defineJob. */
export interface JobDefinition<A extends readonly unknown[] = any> {
  readonly class: string;
  readonly options: DefinitionOptions;
  readonly [ARGS]?: A;
}

/**
 * Defines a class of jobs once, for the code that enqueues and for its handler.
 *
 *     const orderMail = defineJob<[mail: OrderMail]>('OrderMail', { queue: 'mail' });
 *     await client.enqueue(orderMail, [mail]);
 *     worker.handle(orderMail, async (job) => send(job.args[0]));
 */
export function defineJob<A extends readonly unknown[] = any[]>(
  className: [A] extends [Jsonable<A>] ? string : never, options?: DefinitionOptions,
): JobDefinition<A>;

/** A job that is to be enqueued. */
export interface NewJob<A extends readonly unknown[] = readonly any[]> {
  class: string | JobDefinition<any>;
  args?: A;
  options?: JobOptions;
  /** When it is due; immediately if not given. */
  at?: Date;
}

/** A job on its way through middleware. */
export interface OutgoingJob {
  class: string;
  args: any[];
  options: PublishOptions;
  at?: Date;
}

/** Wraps each publish. It may change the job; if it does not call next, nothing is published and the jid is ''. */
export type ClientMiddleware = (job: OutgoingJob, next: () => Promise<string>) => Promise<string | null | undefined | void> | string | null | undefined | void;

/** Options of node:tls. Certificates and keys are PEM, as text or bytes. */
export type TlsOptions = Pick<
  SecureContextOptions & ConnectionOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'pfx' | 'crl' | 'servername' | 'rejectUnauthorized' | 'ciphers' | 'sigalgs' | 'minVersion' | 'maxVersion'
>;

export interface ClientOptions {
  /** amqp://user:password@host:port/vhost, or amqps://; of a cluster amqp://user:password@a,b/vhost, or an array of URLs.
   * Default amqp://guest:guest@127.0.0.1:5672/. */
  url?: string | string[];
  /** Seconds that a publish may take, also while the broker is away. Default 30: too long for a web request. */
  timeout?: number;
  /** For amqps:// URLs: the CA that signed the broker's certificate, a client certificate and its key. */
  tls?: TlsOptions;
}

type Rest<A extends readonly unknown[]> = [] extends A ? [args?: A, options?: PublishOptions] : [args: A, options?: PublishOptions];

type Checked<J extends NewJob> = J extends { class: JobDefinition<infer A> } ? J & { args?: A } : J extends NewJob ? J & { args?: Jsonable<J['args']> } : never;

/** Enqueues jobs. It connects when it has to, and connects again when a connection is lost. */
export class Client {
  constructor(options?: ClientOptions);
  /** Adds middleware; the first is the outermost. */
  use(middleware: ClientMiddleware): this;
  /**
   * Publishes a job, and resolves to its jid when the broker has confirmed it; to '' if middleware did not pass it on. Rejects with Invalid,
   * Refused, Unreachable, Unconfirmed or Closed.
   */
  enqueue<A extends readonly unknown[]>(job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueue<const A extends readonly unknown[]>(className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  /** The same for a job that is due at a time. One in the past is due immediately. */
  enqueueAt<A extends readonly unknown[]>(at: Date, job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueueAt<const A extends readonly unknown[]>(at: Date, className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  /** The same for a job that is due after so many seconds. */
  enqueueIn<A extends readonly unknown[]>(seconds: number, job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueueIn<const A extends readonly unknown[]>(seconds: number, className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  /** Publishes many jobs, and resolves to their jids, in order, when all are answered. Rejects with BulkError if some were not enqueued. */
  enqueueBulk<J extends NewJob>(jobs: readonly (J & Checked<J>)[], options?: { deadline?: number }): Promise<string[]>;
  /** Ends the connection. Publishes that wait for an answer fail. */
  close(): Promise<void>;
}

/** What a handler works on. */
export class Job<A extends readonly unknown[] = any> {
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
  readonly args: Parsed<A>;
  /** The args as they are spelled, a JSON text for each: BigInt(job.rawArgs[0]). */
  readonly rawArgs: string[];
  /** The job's own members, which the option `fields` wrote: a tenant, a locale. */
  readonly fields: { readonly [name: string]: any };
  /** The job byte for byte. */
  readonly raw: Buffer;
  /** Aborted when the worker begins to stop. The job may go on until `cancelled` is aborted, at the end of the stop timeout. */
  readonly stopping: AbortSignal;
  /** Aborted when the job has to end. Its reason is a Timeout, a Cancelled or a Stopping. */
  readonly cancelled: AbortSignal;
  readonly traceparent: string | undefined;
}

/** What it returns or resolves to is ignored; what it throws is the job's failure. */
export type Handler<A extends readonly unknown[] = any> = (job: Job<A>) => unknown;

export interface HandlerOptions<A extends readonly unknown[] = any> {
  /** Seconds until a failed job is tried again; nothing, 0 or less for the default backoff, which is also used if it throws: that is logged. */
  retryIn?: (count: number, error: any, job: Job<A>) => number | undefined | Promise<number | undefined>;
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

/** Gets each line as a text and fields: `class`, `jid`, `attempt`, `next`, `retryAt`, `errorClass`, `errorMessage`, `stack` of a failed job. */
export interface Logger {
  info(text: string, fields?: object): void;
  warn(text: string, fields?: object): void;
  error(text: string, fields?: object): void;
}

export interface WorkerOptions {
  /** amqp://user:password@host:port/vhost, or amqps://; of a cluster amqp://user:password@a,b/vhost, or an array of URLs.
   * Default amqp://guest:guest@127.0.0.1:5672/. */
  url?: string | string[];
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
  /** For amqps:// URLs: the CA that signed the broker's certificate, a client certificate and its key. */
  tls?: TlsOptions;
  /** Of your program. */
  version?: string;
  /** Whether queues that do not exist are declared. Default true. */
  declare?: boolean;
  /** Seconds between heartbeats. Default 10. */
  heartbeat?: number;
  /** Default: the console. false: none. */
  logger?: Logger | false;
  /** The file made of `millrace-jobs/thread`, where a bundle has it under another name than millrace-thread.js beside itself. */
  thread?: string | URL;
}

/** Wraps all handlers. What it throws is the job's failure. */
export type WorkerMiddleware = (job: Job, next: () => Promise<unknown>) => unknown;

/** Runs jobs: handlers in the thread that calls run(), the broker's connection in another. */
export class Worker {
  constructor(options?: WorkerOptions);
  /** Registers the handler of a class. It throws if the class has one already, or if the worker runs. */
  handle<A extends readonly unknown[]>(job: JobDefinition<A>, handler: Handler<A>, options?: HandlerOptions<A>): this;
  handle(className: string, handler: Handler, options?: HandlerOptions): this;
  /** Adds middleware, before run(); the first is the outermost. */
  use(middleware: WorkerMiddleware): this;
  /** Calls a function when the worker consumes for the first time, is quiet, or has handed over everything. */
  on(hook: 'startup' | 'quiet' | 'shutdown', call: () => unknown): this;
  /**
   * failure: calls a function after each failed attempt, before its retry or death is published, which waits for it at most 5 s.
   * death: calls a function when a job was given up. What a hook throws is logged, and changes nothing.
   */
  on(hook: 'failure' | 'death', call: (job: Job, error: any) => unknown): this;
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

export interface InspectorOptions {
  /** http://user:password@host:port, or https://; the user is one of the broker's. Default http://guest:guest@127.0.0.1:15680. */
  url?: string;
  /** In place of user and password, where the sidecar has tokens. */
  token?: string;
  /** Seconds that a call may take. Default 10. */
  timeout?: number;
  /** For https:// URLs. */
  tls?: TlsOptions;
}

/** A job that waits outside of its queue. */
export interface FoundEntry {
  set: 'scheduled-jobs' | 'retries' | 'dead-jobs' | 'gated-jobs';
  /** When it is due, or died. */
  at: Date;
  class: string;
  queue: string;
  /** How many attempts have failed. */
  attempt: number;
  /** What was published, with the job as its member `job`. */
  record: { [name: string]: any };
}

/** An attempt that a worker reported. */
export interface FoundRun {
  /** When it ended. */
  at: Date;
  class: string;
  queue: string;
  status: 'success' | 'failed' | 'dead' | 'discarded' | 'expired';
  /** From 1; 0 if the worker did not say. */
  attempt: number;
  errorClass?: string;
}

/** What is known of a job. Without an entry it is in its queue, runs, or has ended. */
export interface FoundJob {
  jid: string;
  entries: FoundEntry[];
  /** The newest first. */
  runs: FoundRun[];
}

/** How full a queue is. */
export interface QueueSize {
  name: string;
  /** running, idle, no_consumers, paused, or what the broker says. */
  state: string;
  /** Jobs that wait in it. */
  ready: number;
  /** Jobs that are with workers; null if the broker does not say. */
  running: number | null;
  /** Jobs of this queue that wait elsewhere. */
  scheduled: number;
  retries: number;
  dead: number;
}

/**
 * Finds jobs and acts on them, over the REST API of a sidecar. What the sidecar refuses is an ApiError, an unknown job or queue a NotFound.
 * Unreachable: no sidecar was reached. Unconfirmed: there was no answer, so it may have been done; to repeat it is safe.
 */
export class Inspector {
  constructor(options?: InspectorOptions);
  find(jid: string): Promise<FoundJob>;
  /** Deletes a job that is scheduled, waits for a retry, or is dead. */
  delete(jid: string): Promise<void>;
  /** Asks the worker that runs a job to cancel it: its signal `cancelled` is aborted. Rejects with NotFound if no worker says that it runs it. */
  cancel(jid: string): Promise<void>;
  /** Puts a job that waits for a retry, or is dead, into its queue now. */
  retry(jid: string): Promise<void>;
  /** Sets when a scheduled job, or a retry, is due. */
  reschedule(jid: string, at: Date): Promise<void>;
  queue(name: string): Promise<QueueSize>;
  /** All queues, by name. */
  queues(): Promise<QueueSize[]>;
}

/** The base of all errors of this library. */
export class MillraceError extends Error {}
/** The job breaks a rule. Nothing was sent. */
export class Invalid extends MillraceError {}
/** The broker refused the job: its queue is full or down, or there is none and no sidecar to declare it. */
export class Refused extends MillraceError {}
/** There was no connection until the deadline. Nothing was sent. */
export class Unreachable extends MillraceError {}
/** The client was closed. Nothing was sent. */
export class Closed extends MillraceError {}
/** It was sent, and no answer came before the deadline. It may have arrived. */
export class Unconfirmed extends MillraceError {
  constructor(message: string, jid: string, options?: { cause?: unknown });
  /** Of the job: enqueue it again with this jid, or look it up. */
  readonly jid: string;
}
/** Some jobs of a bulk were not enqueued. */
export class BulkError extends MillraceError {
  private constructor();
  /** What became of each, in order. */
  readonly results: ({ jid: string | null; error?: undefined } | { error: Error; jid?: undefined })[];
}
/** What a sidecar answered in place of what an Inspector asked for. */
export class ApiError extends MillraceError {
  constructor(status: number, code: string, reason: string);
  /** Of HTTP. */
  readonly status: number;
  /** What a program branches on: conflict, access_refused. */
  readonly code: string;
  readonly reason: string;
}
/** There is no such job or queue. */
export class NotFound extends ApiError {}
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
/** The reason of `job.cancelled` when the job was cancelled. */
export class Cancelled extends MillraceError {
  private constructor();
}
/** The reason of `job.stopping`, and of `job.cancelled` when the stop timeout is over. */
export class Stopping extends MillraceError {
  private constructor();
}
