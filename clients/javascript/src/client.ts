import { Pauses, close, hostname, pause, unwelcome, type Connection } from './connection.js';
import { resolved, type Checked, type JobDefinition, type NewJob } from './define.js';
import { BulkError, Closed, Refused, Unconfirmed, Undecided, Unreachable, messageOf, type BulkResult } from './errors.js';
import { DEFAULT_URL, Hosts, splitHosts } from './hosts.js';
import { ask } from './leader.js';
import { delivery } from './message.js';
import { throughMiddleware } from './middleware.js';
import { defined, defining, type DefineOptions, type Defined, type PeriodicJob } from './periodic.js';
import { Lost, Publisher, Returned } from './publisher.js';
import { credentialsOption } from './settings.js';
import { tlsOptions } from './tls.js';
import type {
  ClientMiddleware, ClientOptions, Decision, Jsonable, Message, MessageOptions, OutgoingJob, PublishOptions, Rest, UniqueOptions,
} from './types.js';
import { asUnique, decided } from './unique.js';
import { prepare, type Prepared } from './write.js';

const TIMEOUT = 30; // s
const LONGEST_TIMER = 2 ** 31 - 1; // ms
const LEADER_TIME = 5_000; // ms in which the leader must answer
// RabbitMQ returns a message while its stream has no leader, as in the moments after a restart. So
// a returned message is tried again.
const LONGEST_RETURNED = 1_000; // ms between two tries
const ANSWER_TIME = 500; // ms before the deadline in which no try begins

/** What an error says of the publish that it ends. */
interface What {
  jid: string;
  again: string;
}

/** The deadline for the answer to a publish, as a promise for races. */
class Deadline {
  readonly promise: Promise<this>;
  #timer: NodeJS.Timeout | undefined;
  #end: number;

  constructor(seconds: number) {
    this.#end = performance.now() + seconds * 1000;
    this.promise = new Promise((resolve) => {
      this.#timer = setTimeout(() => resolve(this), Math.min(seconds * 1000, LONGEST_TIMER));
    });
  }

  /** Resolves to the promise's value, or to this deadline if it passes first. */
  or<T>(promise: Promise<T>): Promise<T | this> {
    return Promise.race([promise, this.promise]);
  }

  /** The ms that are left. */
  get left(): number {
    return this.#end - performance.now();
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** Enqueues jobs. It connects when it is first used, and again when the connection is lost. */
export class Client {
  #hosts: Hosts;
  #timeout: number;
  #failFast: boolean;
  #middleware: ClientMiddleware[] = [];
  #publisher: Publisher | undefined;
  #connection: Connection | undefined;
  #connecting: Promise<Publisher> | undefined;
  #waiters = 0;
  #welcomed = false;
  #closed = false;
  #why: unknown; // the error of the last attempt to connect
  #waits = new Set<() => void>(); // ends the pauses of returned jobs
  #closing!: () => void;
  #ended = new Promise<void>((resolve) => {
    this.#closing = resolve;
  });

  constructor(options: ClientOptions = {}) {
    const { url, timeout = TIMEOUT, failFast = false, tls, credentials, ...others } = { url: DEFAULT_URL, ...options };
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw new TypeError(`millrace: there is no option ${unknown}`);
    if (!(Number.isFinite(timeout) && timeout > 0)) throw new TypeError(`millrace: timeout is ${timeout}`);
    if (typeof failFast !== 'boolean') throw new TypeError('millrace: failFast is no boolean');
    const urls = splitHosts(url);
    this.#hosts = new Hosts(urls, tlsOptions(tls, urls), credentialsOption(credentials));
    this.#timeout = timeout;
    this.#failFast = failFast;
  }

  /**
   * Adds middleware around each publish: async (job, next) => next(). The first is the outermost.
   * If it does not call next, nothing is published and the jid is ''. The result of the middleware
   * is ignored.
   */
  use(middleware: ClientMiddleware): this {
    this.#middleware.push(middleware);
    return this;
  }

  /**
   * Publishes a job, and resolves to its jid when the broker has confirmed it. Resolves to '' if
   * middleware did not publish it. Rejects with Invalid, Refused, Unreachable, Unconfirmed or
   * Closed.
   */
  enqueue<A extends readonly unknown[]>(job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueue<const A extends readonly unknown[]>(className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  enqueue(job: string | JobDefinition, args: readonly unknown[] = [], options: PublishOptions = {}): Promise<string> {
    return this.#push({ class: job, args, options });
  }

  /**
   * Publishes a job that is due at a given time. If the time is past, the job is due immediately.
   */
  enqueueAt<A extends readonly unknown[]>(at: Date, job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueueAt<const A extends readonly unknown[]>(at: Date, className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  enqueueAt(at: Date, job: string | JobDefinition, args: readonly unknown[] = [], options: PublishOptions = {}): Promise<string> {
    return this.#push({ class: job, args, options, at: at ?? null });
  }

  /** Publishes a job that is due after a number of seconds. */
  enqueueIn<A extends readonly unknown[]>(seconds: number, job: JobDefinition<A>, ...rest: Rest<A>): Promise<string>;
  enqueueIn<const A extends readonly unknown[]>(seconds: number, className: string, args?: A & Jsonable<A>, options?: PublishOptions): Promise<string>;
  enqueueIn(seconds: number, job: string | JobDefinition, args: readonly unknown[] = [], options: PublishOptions = {}): Promise<string> {
    return this.#push({ class: job, args, options, at: new Date(Date.now() + seconds * 1000) });
  }

  /**
   * Publishes a job, and resolves to which job stays if there is one with the same key already. It
   * waits until the leader has decided. A job without the option `unique` has `unique: true`. Rejects
   * as enqueue, and with Undecided if the job is published and no leader has answered before the
   * deadline.
   */
  enqueueUnique<A extends readonly unknown[]>(job: JobDefinition<A>, ...rest: Rest<A, UniqueOptions>): Promise<Decision>;
  enqueueUnique<const A extends readonly unknown[]>(className: string, args?: A & Jsonable<A>, options?: UniqueOptions): Promise<Decision>;
  async enqueueUnique(named: string | JobDefinition, args: readonly unknown[] = [], { at, ...options }: UniqueOptions = {}): Promise<Decision> {
    const until = new Deadline(options.deadline ?? this.#timeout);
    const job = asUnique(resolved({ class: named, args, options, ...(at !== undefined && { at }) }));
    let decision = { jid: '', duplicate: false };
    try {
      await throughMiddleware(this.#middleware, job, async () => {
        const message = prepare(job);
        decision = await this.#decision(message, until);
        return message.jid;
      });
      return decision;
    } finally {
      until.clear();
    }
  }

  /**
   * Delays any AMQP message until a given time, and resolves to the jid of the job that delivers it.
   * At that time a sidecar publishes the message to its exchange, with one more header,
   * millrace-jid. Its setting --deliver-to must match the name of the exchange. Rejects as
   * enqueueAt.
   */
  async publishAt(at: Date, message: Message, options: MessageOptions = {}): Promise<string> {
    return this.#push({ ...delivery(message, options), at: at ?? null });
  }

  /** Delays any AMQP message for a number of seconds: see publishAt. */
  publishIn(seconds: number, message: Message, options: MessageOptions = {}): Promise<string> {
    return this.publishAt(new Date(Date.now() + seconds * 1000), message, options);
  }

  /**
   * Publishes many jobs, and resolves to their jids, in order, when all are answered. Rejects with
   * BulkError if some were not enqueued.
   */
  async enqueueBulk<J extends NewJob>(jobs: readonly (J & Checked<J>)[], { deadline = this.#timeout }: { deadline?: number } = {}): Promise<string[]> {
    const until = new Deadline(deadline);
    try {
      const settled = await Promise.allSettled(jobs.map((job) => this.#wrapped(resolved(job), until)));
      const results = settled.map((r): BulkResult => (r.status === 'fulfilled' ? { jid: r.value } : { error: r.reason }));
      if (results.some((r) => r.error)) throw new BulkError(results);
      return results.map((r) => r.jid as string);
    } finally {
      until.clear();
    }
  }

  /**
   * Sets all periodic jobs, limits and governed queues of a source, which is the name of a program.
   * What the source had defined before and does not any more is removed. A list that is undefined
   * leaves what there is of its kind as it is. Call it at each deploy: to repeat it changes nothing.
   *
   * The leader carries it out. Without a leader it is tried again until the deadline. Rejects with
   * Invalid if a definition breaks a rule, with Refused if another source has defined one of them or
   * no sidecar leads, and otherwise as enqueue does.
   */
  async define(source: string, jobs?: readonly PeriodicJob[], { limits, queues, deadline = this.#timeout }: DefineOptions = {}): Promise<Defined> {
    const command = defining(source, { jobs, limits, queues });
    const until = new Deadline(deadline);
    try {
      const what = { jid: '', again: '; the leader may have carried it out' };
      return defined(await this.#repeat(() => ask(this.#connection as Connection, command, LEADER_TIME), until, what));
    } finally {
      until.clear();
    }
  }

  /** Closes the connection. Publishes that still wait for an answer fail. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing();
    for (const end of this.#waits) end();
    if (this.#connection) await close(this.#connection);
  }

  async #push(job: NewJob & { options: PublishOptions }): Promise<string> {
    const until = new Deadline(job.options.deadline ?? this.#timeout);
    try {
      return await this.#wrapped(resolved(job), until);
    } finally {
      until.clear();
    }
  }

  #wrapped(job: OutgoingJob, until: Deadline): Promise<string> {
    return throughMiddleware(this.#middleware, job, () => this.#publish(job, until));
  }

  #publish(job: OutgoingJob, until: Deadline): Promise<string> {
    const message = prepare(job);
    return this.#repeat((publisher) => publisher.publish(message).then(() => message.jid), until, { jid: message.jid, again: '; the job may have arrived' });
  }

  /** Publishes a job, and waits for the leader's decision. */
  async #decision(message: Prepared, until: Deadline): Promise<Decision> {
    const { jid } = message;
    const { answer } = await this.#repeat((publisher) => publisher.ask(message), until, { jid, again: '; the job may have arrived' });
    const undecided = (why: string, cause?: unknown) => new Undecided(`the job is published, and a leader will decide whether it is a duplicate: ${why}`, jid, { cause });
    let answered: any;
    try {
      answered = await until.or(answer); // it is not published again: the job may have run already
    } catch (cause) {
      throw undecided(this.#closed ? 'the client was closed' : 'the connection was lost', cause);
    }
    if (answered === until) throw undecided('no leader has answered before the deadline');
    return decided(answered, jid);
  }

  /** Does the same repeatedly, until the broker or the leader has answered. */
  async #repeat<T>(act: (publisher: Publisher) => Promise<T>, until: Deadline, { jid, again }: What): Promise<T> {
    const begin = performance.now();
    const pauses = new Pauses(LONGEST_RETURNED);
    const unconfirmed = (text: string, cause?: unknown) => new Unconfirmed(text + again, jid, { cause });
    for (let sent = false; ; ) { // whether it may have arrived
      let publisher: Publisher;
      try {
        publisher = this.#current() ?? (await this.#reconnected(until));
      } catch (error) {
        throw sent && !(error instanceof Closed) ? unconfirmed('the connection was lost before the broker answered', error) : error;
      }
      const answer = act(publisher);
      answer.catch(() => {}); // the caller may have stopped waiting
      try {
        const answered = await until.or(answer);
        if (answered === until) throw unconfirmed('there was no answer before the deadline');
        return answered as T;
      } catch (error) {
        if (error instanceof Returned) {
          const ms = pauses.next();
          if (until.left < ms + ANSWER_TIME) {
            const refused = new Refused(`${error.message}; tried for ${((performance.now() - begin) / 1000).toFixed(1)} s`);
            throw sent ? unconfirmed(refused.message, refused) : refused;
          }
          await this.#wait(ms);
        } else if (error instanceof Lost) sent = true;
        else throw error;
        if (this.#closed && sent) throw unconfirmed('the client was closed before the broker answered', error);
      }
    }
  }

  /** Waits for some ms, or until the client is closed. */
  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waits.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#waits.add(end);
    });
  }

  #current(): Publisher | undefined {
    if (this.#closed) throw new Closed('the client is closed');
    return this.#publisher?.gone ? undefined : this.#publisher;
  }

  async #reconnected(until: Deadline): Promise<Publisher> {
    this.#connecting ??= this.#reconnect().finally(() => {
      this.#connecting = undefined;
    });
    this.#connecting.catch(() => {}); // the caller may have stopped waiting
    this.#waiters++;
    const publisher = await until.or(this.#connecting).finally(() => this.#waiters--);
    if (publisher !== until) return publisher as Publisher;
    const why = this.#why === undefined ? 'the broker does not answer' : messageOf(this.#why);
    throw new Unreachable(`no connection before the deadline: ${why}`, { cause: this.#why });
  }

  async #reconnect(): Promise<Publisher> {
    for (const pauses = new Pauses(); ; ) {
      const old = this.#connection;
      this.#connection = undefined;
      if (old) close(old);
      const current = this.#current();
      if (current) return current;
      try {
        return await this.#dial();
      } catch (error) {
        this.#why = error;
        if (!this.#welcomed && unwelcome(error)) throw new Unreachable(`the broker turns us away: ${messageOf(error)}`, { cause: error });
        if (this.#failFast) throw new Unreachable(`no connection: ${messageOf(error)}`, { cause: error });
      }
      await pause(pauses.next(), this.#ended);
      if (this.#waiters === 0) throw new Unreachable(`the enqueue was given up: ${messageOf(this.#why)}`);
    }
  }

  async #dial(): Promise<Publisher> {
    const connection = await this.#hosts.dial(`millrace producer ${hostname()}:${process.pid}`, this.#ended);
    if (this.#closed) {
      await close(connection);
      throw new Closed('the client is closed');
    }
    this.#connection = connection;
    this.#welcomed = true;
    this.#publisher = await Publisher.open(connection);
    return this.#publisher;
  }
}
