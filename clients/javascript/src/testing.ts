/**
 * Test helpers without a broker. They run the handlers, middleware and hooks of a worker, and check
 * jobs as a Client does.
 */
import type { Client } from './client.js';
import { queueDefinition, type GovernedQueue } from './governed.js';
import { resolved, type Checked, type JobDefinition, type NewJob } from './define.js';
import { BulkError, Cancelled, MillraceError, Stopping, type BulkResult } from './errors.js';
import { Job } from './job.js';
import { Keys } from './keys.js';
import { limitDefinition, type Limit } from './limits.js';
import { delivery } from './message.js';
import { throughMiddleware } from './middleware.js';
import { expire, judge, unknownClass, type Outcome } from './outcome.js';
import { parseJob, type Delivered } from './parse.js';
import { defining, definition, type DefineOptions, type Defined, type PeriodicJob } from './periodic.js';
import type { Registry } from './registry.js';
import { withRetryCount } from './scan.js';
import type {
  ClientMiddleware, Decision, Jsonable, Message, MessageOptions, OutgoingJob, PublishOptions, Rest, Unique, UniqueOptions,
} from './types.js';
import { asUnique } from './unique.js';
import { registryOf, type Worker } from './worker.js';
import { prepare, toJSON } from './write.js';

/** A job that was enqueued and has not run. */
export interface Enqueued {
  jid: string;
  class: string;
  args: any;
  queue: string;
  /** The number of the next attempt. */
  attempt: number;
  /** Of a limited or unique job: with the `limitKey`, if it has one, and what is `unique` about it. */
  gate?: { key?: string; unique?: Unique; at?: number };
  /** When it is due, if it is scheduled. */
  at?: Date;
  /** The job as it would be published. */
  raw: Buffer;
}

/** A job that failed. */
export interface Failed extends Enqueued {
  error: any;
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

/** The bytes of a job, and the other parts of a delivery. */
interface Written {
  raw: Buffer;
  headers: Record<string, unknown>;
  at?: Date;
}

/** Returns the job of a message, and when it is due. */
function written(job: OutgoingJob): Written {
  const { body, properties } = prepare(job);
  const raw = job.at === undefined || job.options.unique ? body : body.subarray(body.indexOf('"job":') + 6, -1);
  return { raw, headers: properties.headers as Record<string, unknown>, ...(job.at && { at: job.at }) };
}

/** Returns a job at one of its attempts, as a worker would get it. */
function delivered({ raw, headers }: Written, number: number): Delivered {
  const body = Buffer.from(withRetryCount(raw.toString(), number - 1));
  return parseJob(body, JSON.parse(body.toString()).queue, { headers });
}

/** One attempt at a delivered job. It ends as it would in a worker, and returns its result. */
class Delivery {
  #registry: Registry;
  #data: Delivered;
  #job: Job;
  #stopping = new AbortController();

  /** @internal */
  constructor(worker: Worker, data: Delivered) {
    this.#registry = registryOf(worker);
    this.#data = data;
    this.#job = new Job(data, this.#stopping.signal);
  }

  /** The job as its handler gets it. */
  get job(): Job {
    return this.#job;
  }

  /** Cancels the job, before it runs or while it does. */
  cancel(): this {
    this.#job.cancel(new Cancelled());
    return this;
  }

  /** Stops the worker, before the job runs or while it does. */
  stop(): this {
    this.#stopping.abort(new Stopping());
    return this;
  }

  /** Runs the job with the hooks, and resolves to {status, failed, error, retryIn}. */
  async run(): Promise<Result> {
    const { outcome, error } = await this.#outcome();
    const { next, failed = false, after } = outcome;
    if (next) await this.#registry.ended(this.#job, { ...outcome, next }, error);
    if (outcome.died) await this.#registry.call('death', this.#job, error);
    return { status: next ?? 'success', failed, ...(error !== undefined && { error }), ...(next === 'retry' && { retryIn: after }) };
  }

  async #outcome(): Promise<{ outcome: Outcome; error: unknown }> {
    const data = this.#data;
    const now = Date.now();
    if (data.expiresAt && data.expiresAt < now) return { outcome: expire(data, now), error: new MillraceError('expired before it began') };
    if (!this.#registry.has(data.class)) {
      const verdict = unknownClass(data.class);
      return { outcome: judge(data, verdict), error: Object.assign(new MillraceError(verdict.message), { stack: '' }) };
    }
    const { verdict = { kind: 'success' } as const, shown, end } = await this.#registry.perform(this.#job, data.timeout);
    return { outcome: judge(data, verdict, { now: end, stopping: this.#stopping.signal.aborted }), error: shown };
  }
}

/**
 * One attempt at a job, {class, args, options}, as a client would enqueue it. `attempt` is the
 * number of the attempt, from 1.
 */
export class Attempt extends Delivery {
  constructor(worker: Worker, job: NewJob, { attempt = 1 }: { attempt?: number } = {}) {
    if (!Number.isInteger(attempt) || attempt < 1) throw new TypeError(`millrace: attempts are counted from 1: ${attempt}`);
    super(worker, delivered(written(resolved(job)), attempt));
  }
}

const NOTHING: Defined = { made: [], changed: [], forgotten: [], unchanged: 0 };

/** Returns what it changes to define some jobs or limits in place of others. */
function difference<T extends { name: string }>(old: readonly T[], wanted: readonly T[], encoded: (each: T) => unknown): Defined {
  const texts = (all: readonly T[]) => new Map(all.map((each) => [each.name, toJSON(encoded(each))]));
  const before = texts(old);
  const now = texts(wanted);
  const names = [...now.keys()];
  const changed = names.filter((name) => before.has(name) && before.get(name) !== now.get(name));
  const made = names.filter((name) => !before.has(name));
  return { made, changed, forgotten: [...before.keys()].filter((name) => !now.has(name)), unchanged: names.length - made.length - changed.length };
}

/** Replaces a Client. Each enqueued job is passed to a function. */
class Offline implements Pick<Client, 'enqueue' | 'enqueueAt' | 'enqueueIn' | 'enqueueUnique' | 'publishAt' | 'publishIn' | 'enqueueBulk' | 'define' | 'close'> {
  #middleware: ClientMiddleware[] = [];
  #enqueued: (message: Written) => Promise<Decision>;
  #periodic = new Map<string, PeriodicJob[]>();
  #limits = new Map<string, Limit[]>();
  #queues = new Map<string, GovernedQueue[]>();

  /** @internal */
  constructor(enqueued: (message: Written) => Promise<Decision>) {
    this.#enqueued = enqueued;
  }

  /** Adds middleware around publishes. */
  use(middleware: ClientMiddleware): this {
    this.#middleware.push(middleware);
    return this;
  }

  enqueue<A extends readonly unknown[]>(job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueue<const A extends readonly unknown[]>(className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  enqueue(job: string | JobDefinition, args: readonly unknown[] = [], options: PublishOptions = {}): Promise<string> {
    return this.#push({ class: job, args, options });
  }

  enqueueAt<A extends readonly unknown[]>(at: Date, job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueueAt<const A extends readonly unknown[]>(at: Date, className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  enqueueAt(at: Date, job: string | JobDefinition, args: readonly unknown[] = [], options: PublishOptions = {}): Promise<string> {
    return this.#push({ class: job, args, options, at: at ?? null });
  }

  enqueueIn<A extends readonly unknown[]>(seconds: number, job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueueIn<const A extends readonly unknown[]>(seconds: number, className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  enqueueIn(seconds: number, job: string | JobDefinition, args: readonly unknown[] = [], options: PublishOptions = {}): Promise<string> {
    return this.#push({ class: job, args, options, at: new Date(Date.now() + seconds * 1000) });
  }

  /** Resolves to which job stays if there is one with the same key. A duplicate is not enqueued. */
  enqueueUnique<A extends readonly unknown[]>(job: JobDefinition<A>, ...rest: Rest<A, UniqueOptions>): Promise<Decision>;
  enqueueUnique<const A extends readonly unknown[]>(className: string, args?: A & Jsonable<A>, options?: UniqueOptions): Promise<Decision>;
  async enqueueUnique(named: string | JobDefinition, args: readonly unknown[] = [], { at, ...options }: UniqueOptions = {}): Promise<Decision> {
    const job = asUnique(resolved({ class: named, args, options, ...(at !== undefined && { at }) }));
    let decision = { jid: '', duplicate: false };
    await throughMiddleware(this.#middleware, job, async () => {
      decision = await this.#enqueued(written(job));
      return decision.jid;
    });
    return decision;
  }

  async publishAt(at: Date, message: Message, options: MessageOptions = {}): Promise<string> {
    return this.#push({ ...delivery(message, options), at: at ?? null });
  }

  publishIn(seconds: number, message: Message, options: MessageOptions = {}): Promise<string> {
    return this.publishAt(new Date(Date.now() + seconds * 1000), message, options);
  }

  enqueueBulk<J extends NewJob>(jobs: readonly (J & Checked<J>)[], options?: { deadline?: number }): Promise<string[]>;
  async enqueueBulk(jobs: readonly NewJob[]): Promise<string[]> {
    const results: BulkResult[] = [];
    for (const job of jobs) {
      try {
        results.push({ jid: await this.#push(job) });
      } catch (error) {
        results.push({ error: error as Error });
      }
    }
    if (results.some((r) => r.error)) throw new BulkError(results);
    return results.map((r) => r.jid as string);
  }

  /** Keeps what a source defines. In a test, nothing is due or waits. */
  async define(source: string, jobs?: readonly PeriodicJob[], { limits, queues }: DefineOptions = {}): Promise<Defined> {
    defining(source, { jobs, limits, queues }); // checks them
    const did = [
      jobs ? difference(this.periodic(source), jobs, definition) : NOTHING,
      limits ? difference(this.limits(source), limits, limitDefinition) : NOTHING,
      queues ? difference(this.queues(source), queues, queueDefinition) : NOTHING,
    ];
    if (jobs) this.#periodic.set(source, [...jobs]);
    if (limits) this.#limits.set(source, [...limits]);
    if (queues) this.#queues.set(source, [...queues]);
    const all = (name: 'made' | 'changed' | 'forgotten') => did.flatMap((each) => each[name]);
    return { made: all('made'), changed: all('changed'), forgotten: all('forgotten'), unchanged: did.reduce((sum, each) => sum + each.unchanged, 0) };
  }

  /** Returns the periodic jobs that a source has defined. */
  periodic(source: string): PeriodicJob[] {
    return [...(this.#periodic.get(source) ?? [])];
  }

  /** Returns the limits that a source has defined. */
  limits(source: string): Limit[] {
    return [...(this.#limits.get(source) ?? [])];
  }

  /** Returns the governed queues that a source has defined. */
  queues(source: string): GovernedQueue[] {
    return [...(this.#queues.get(source) ?? [])];
  }

  async close(): Promise<void> {}

  async #push(given: NewJob): Promise<string> {
    const job = resolved(given);
    return throughMiddleware(this.#middleware, job, () => this.#enqueue(job));
  }

  async #enqueue(job: OutgoingJob): Promise<string> {
    const message = written(job);
    await this.#enqueued(message);
    return JSON.parse(message.raw.toString()).jid;
  }
}

/**
 * Replaces a Client. enqueue makes the first attempt immediately, and its error is thrown to the
 * caller.
 */
export class Inline extends Offline {
  constructor(worker: Worker) {
    if (!worker) throw new TypeError('millrace: Inline needs the worker that runs its jobs: new Inline(worker)');
    const keys = new Keys();
    super(async (message) => {
      const job = JSON.parse(message.raw.toString());
      const decision = keys.decide(job, () => false);
      if (decision.duplicate) return decision;
      keys.begins(job);
      const { failed, error } = await new Delivery(worker, delivered(message, 1)).run();
      keys.ends(job);
      if (failed) throw error;
      return decision;
    });
  }
}

/** A job that a Fake has, with its next attempt. */
interface Kept {
  message: Written;
  attempt: number;
  retryIn?: number | undefined;
  error?: unknown;
}

/** Replaces a Client. enqueue collects jobs, and drain runs them. */
export class Fake extends Offline {
  #worker: Worker | undefined;
  #waiting: Kept[] = [];
  #retries: Kept[] = [];
  #dead: Kept[] = [];
  #running: Delivery | undefined;
  #keys = new Keys();

  /** A Fake that only collects needs no worker. */
  constructor(worker?: Worker) {
    super(async (message) => {
      const decision = this.#keys.decide(JSON.parse(message.raw.toString()), (jid) => this.#remove(jid));
      if (!decision.duplicate) this.#waiting.push({ message, attempt: 1 });
      return decision;
    });
    this.#worker = worker;
  }

  /**
   * Returns the jobs that were enqueued and have not run, in order; with a class, only its jobs.
   */
  jobs(job?: string | JobDefinition): Enqueued[] {
    return this.#listed(this.#waiting, job);
  }

  /**
   * Returns jobs that failed and wait for a retry, with the next `attempt`, `retryIn` and the
   * `error`.
   */
  retries(job?: string | JobDefinition): (Failed & { retryIn: number })[] {
    return this.#listed(this.#retries, job) as (Failed & { retryIn: number })[];
  }

  /** Returns jobs that were given up, with their `error`. */
  dead(job?: string | JobDefinition): Failed[] {
    return this.#listed(this.#dead, job) as Failed[];
  }

  #listed(list: Kept[], job: string | JobDefinition | undefined): Enqueued[] {
    const all = list.map(({ message: { raw, at }, ...rest }) => {
      const { jid, class: name, args, queue, gate } = JSON.parse(raw.toString());
      return { jid, class: name, args, queue, raw, ...(gate && { gate }), ...(at && { at }), ...rest };
    });
    const wanted = typeof job === 'object' ? job.class : job;
    return wanted === undefined ? all : all.filter(({ class: name }) => name === wanted);
  }

  /**
   * Runs the collected jobs, and those that they enqueue. With {retries: true} it also retries
   * failed jobs immediately, until they end well or are given up. All jobs run. At the end, the
   * errors of those that failed are thrown, several as an AggregateError.
   */
  async drain({ retries = false }: { retries?: boolean } = {}): Promise<number> {
    const failures: unknown[] = [];
    let n = 0;
    for (;;) {
      if (retries) this.#waiting.push(...this.#retries.splice(0));
      const next = this.#waiting.shift();
      if (!next) break;
      n++;
      failures.push(...(await this.#attempt(next, retries)));
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} jobs failed: ${failures.map(String).join('; ')}`);
    return n;
  }

  async #attempt({ message, attempt }: Kept, retries: boolean): Promise<unknown[]> {
    if (!this.#worker) throw new TypeError('millrace: drain needs a worker: new Fake(worker)');
    const job = JSON.parse(message.raw.toString());
    this.#keys.begins(job);
    this.#running = new Delivery(this.#worker, delivered(message, attempt));
    const { status, failed, error, retryIn } = await this.#running.run();
    this.#running = undefined;
    if (status === 'retry') this.#retries.push({ message, attempt: attempt + 1, retryIn, error });
    else this.#keys.ends(job);
    if (status === 'dead') this.#dead.push({ message, attempt, error });
    return failed && !(retries && status === 'retry') ? [error] : [];
  }

  /** Removes a job that has not run, for a later one with the same key. */
  #remove(jid: string): boolean {
    const i = this.#waiting.findIndex(({ message, attempt }) => attempt === 1 && JSON.parse(message.raw.toString()).jid === jid);
    if (i >= 0) this.#waiting.splice(i, 1);
    return i >= 0;
  }

  /** Cancels the running job if it has the jid, as an operator would. */
  cancel(jid: string): boolean {
    if (this.#running?.job.jid !== jid) return false;
    this.#running.cancel();
    return true;
  }

  /** Removes all jobs. */
  clear(): void {
    for (const list of [this.#waiting, this.#retries, this.#dead]) list.length = 0;
    this.#keys.clear();
  }
}
