/** The types that programs use, except those that name a job or a definition. */
import type { ConnectionOptions, SecureContextOptions } from 'node:tls';

/** A value that can be written as JSON: a bigint becomes a number, a Date becomes text. */
export type Json = string | number | bigint | boolean | null | Date | readonly Json[] | { readonly [name: string]: Json | undefined };

/** T, if all of it can be written as JSON, or else never. T may be an interface. */
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

/**
 * The type that a handler gets for T after T was written as JSON and read again: a Date is text, a
 * bigint a number.
 */
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

/** Which jobs count as the same, and what becomes of a job when there is one of them already. */
export interface Unique {
  /** A text that names the job: 1 to 200 bytes. Without it, `by` names the job. */
  key?: string;
  /**
   * The parts of the job that name it: `class`, `queue`, `args`, `jid`, or paths such as `args.0` and
   * `args.0.customer`. Default: class, queue and args.
   */
  by?: readonly string[];
  /**
   * How long the key is taken. Default `unfinished`: until the job has ended, also while it waits for
   * a retry. `waiting`: until a worker can take it.
   */
  while?: 'unfinished' | 'waiting';
  /** How many seconds the key is taken in any case, from when the job was enqueued. */
  for?: number;
  /** Which job stays. Default `keep`: the first. `replace`: the later one, if the first still waits. */
  on?: 'keep' | 'replace';
  /** By how many seconds the job is put off, again with each duplicate. */
  wait?: number;
  /** By how many seconds it is put off in all. Needs `wait`. */
  max?: number;
}

/** Which job stays of several with the same key. */
export interface Decision {
  /** That of the job that stays. `''` if middleware did not publish the job. */
  jid: string;
  /** Whether it is another one than the job that was enqueued, which does not run. */
  duplicate: boolean;
}

/** The options of a job. */
export interface JobOptions {
  /** Default "default". */
  queue?: string;
  /** The maximum of retries: true is 25, false is 0. Default 25. */
  retry?: number | boolean;
  /** 0 to 10, the highest first. */
  priority?: number;
  /** Tags by which to find jobs. */
  tags?: readonly string[];
  /**
   * Whether the limits that are about its queue and class count it. A job with a `limitKey` is
   * limited anyway.
   */
  limited?: boolean;
  /** What limits per key count it under, such as a customer: at most 200 bytes. `''` is none. */
  limitKey?: string;
  /** Makes other jobs with the same key duplicates, which do not run. true: by class, queue and args. */
  unique?: boolean | Unique;
  /** Default: 16 random bytes in hex. */
  jid?: string;
  /** A job that has not begun by then becomes a dead job. */
  expiresAt?: Date;
  /** How many seconds it may run. */
  timeout?: number;
  /** false: the job does not become a dead job when it is given up. */
  dead?: boolean;
  /** How many lines of a failure's stack are kept. Default 20; true is 100, false or 0 none. */
  backtrace?: number | boolean;
  /** Your own members of the job, which handlers read as `job.fields`. */
  fields?: { readonly [name: string]: Json | undefined };
  /** W3C trace context. */
  traceparent?: string;
}

export interface PublishOptions extends JobOptions {
  /** Seconds until an unanswered publish fails. Default: the client's timeout. */
  deadline?: number;
}

/** The options of enqueueUnique. */
export interface UniqueOptions extends PublishOptions {
  /** When the job is due; immediately if absent. */
  at?: Date;
}

/** A message to delay. */
export interface Message {
  /** '' is the default exchange. */
  exchange: string;
  /** Default ''. */
  routingKey?: string;
  /** Default ''. */
  body?: string | Uint8Array;
  properties?: MessageProperties;
}

/** The properties of a delayed message. */
export interface MessageProperties {
  contentType?: string;
  contentEncoding?: string;
  correlationId?: string;
  replyTo?: string;
  messageId?: string;
  type?: string;
  appId?: string;
  /** Milliseconds after the delivery, as a text. */
  expiration?: string;
  /** 1: transient, 2: persistent. Default 2. */
  deliveryMode?: 1 | 2;
  /** 0 to 255. */
  priority?: number;
  /** In whole seconds. */
  timestamp?: Date;
  headers?: { readonly [name: string]: Header | undefined };
}

/** A value in the headers of a delayed message: what JSON has exactly. */
export type Header = string | number | bigint | boolean | null | readonly Header[] | { readonly [name: string]: Header | undefined };

/** The options of the job that delivers a message. */
export type MessageOptions = Omit<PublishOptions, 'queue' | 'limited' | 'limitKey' | 'unique'>;

/** The options that a definition sets for all jobs of its class. */
export type DefinitionOptions = Omit<JobOptions, 'jid'>;

/** A job, as middleware gets it. */
export interface OutgoingJob {
  class: string;
  args: any[];
  options: PublishOptions;
  at?: Date;
}

/**
 * Wraps each publish. It may change the job. If it does not call next, nothing is published and the
 * jid is ''. Its result is ignored.
 */
export type ClientMiddleware = (job: OutgoingJob, next: () => Promise<string>) => unknown;

/** Options of node:tls. Certificates and keys are PEM, as text or bytes. */
export type TlsOptions = Pick<
  SecureContextOptions & ConnectionOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'pfx' | 'crl' | 'servername' | 'rejectUnauthorized' | 'ciphers' | 'sigalgs' | 'minVersion' | 'maxVersion'
>;

/** The user of the broker, and the password or token. */
export interface Credentials {
  username: string;
  password: string;
}

export interface ClientOptions {
  /**
   * amqp://user:password@host:port/vhost, or amqps://. For a cluster:
   * amqp://user:password@a,b/vhost, or an array of URLs. Default
   * amqp://guest:guest@127.0.0.1:5672/.
   */
  url?: string | string[];
  /**
   * How many seconds a publish may take, including the wait for a connection. Default 30, which is
   * too long for a web request.
   */
  timeout?: number;
  /**
   * Whether a publish fails as soon as each host was tried once, instead of waiting for the broker.
   * Default false.
   */
  failFast?: boolean;
  /**
   * For amqps:// URLs: the CA that signed the broker's certificate, a client certificate and its
   * key.
   */
  tls?: TlsOptions;
  /**
   * Returns the user and password, in place of those of the URL, for passwords and tokens that
   * rotate. It is called for each connection, the first and each later one. If it throws, rejects,
   * or takes more than 30 s, that attempt to connect fails. The next attempt calls it again, but
   * never while an earlier call runs.
   */
  credentials?: () => Credentials | Promise<Credentials>;
}

/** The arguments of enqueue after a definition. */
export type Rest<A extends readonly unknown[], O = PublishOptions> = [] extends A ? [args?: A, options?: O] : [args: A, options?: O];

/**
 * An array is strict: a queue's jobs begin only when no job of an earlier queue waits. An object is
 * weighted.
 */
export type Queues = string[] | { [queue: string]: number };

/** Queues with slots of their own. */
export interface Lane {
  name: string;
  queues: Queues;
  /** Default 5. */
  concurrency?: number;
}

/**
 * Gets each line as a text and fields. A line about a failed job has `class`, `jid`, `queue`,
 * `attempt`, `next`, `retryAt`, `errorClass`, `error` and `stack`.
 */
export interface Logger {
  info(text: string, fields?: object): void;
  warn(text: string, fields?: object): void;
  error(text: string, fields?: object): void;
}

export interface WorkerOptions {
  /**
   * amqp://user:password@host:port/vhost, or amqps://. For a cluster:
   * amqp://user:password@a,b/vhost, or an array of URLs. Default
   * amqp://guest:guest@127.0.0.1:5672/.
   */
  url?: string | string[];
  /** The queues of the lane "default". Default ["default"] if there are no lanes. */
  queues?: Queues;
  /** How many jobs run concurrently. Default 5. */
  concurrency?: number;
  lanes?: Lane[];
  /** Part of the worker's identity. */
  tag?: string;
  /** Shown with the worker. */
  labels?: { [name: string]: string };
  /** How many seconds jobs have to end when the worker stops. Default 25. */
  stopTimeout?: number;
  /** After how many deaths of workers a job is given up. Default 3; 0: never. */
  maxDeaths?: number;
  /**
   * For amqps:// URLs: the CA that signed the broker's certificate, a client certificate and its
   * key.
   */
  tls?: TlsOptions;
  /**
   * Returns the user and password, in place of those of the URL, for passwords and tokens that
   * rotate. It is called for each connection, the first and each later one. If it throws, rejects,
   * or takes more than 30 s, that attempt to connect fails. The next attempt calls it again, but
   * never while an earlier call runs.
   */
  credentials?: () => Credentials | Promise<Credentials>;
  /** The version of your program. */
  version?: string;
  /** Whether queues that do not exist are declared. Default true. */
  declare?: boolean;
  /** Seconds between heartbeats. Default 10. */
  heartbeat?: number;
  /** Default: the console. false: nothing is logged. */
  logger?: Logger | false;
  /**
   * The file that a bundler made of `millrace-jobs/thread`. Necessary only if it is not
   * millrace-thread.js beside the bundle.
   */
  thread?: string | URL;
}
