'use strict';

/** Test helpers without a broker. They run the handlers, middleware and hooks of a worker, and check jobs as a Client does. */
const { BulkError, Cancelled, MillraceError, Stopping } = require('./errors.js');
const { resolved } = require('./define.js');
const { Job } = require('./job.js');
const { expire, judge, unknownClass } = require('./outcome.js');
const { parseJob } = require('./parse.js');
const { withRetryCount } = require('./scan.js');
const { registryOf } = require('./worker.js');
const { prepare } = require('./write.js');

/** The job of a message, and when it is due. */
function written(job) {
  const { body, properties } = prepare(job);
  const raw = job.at === undefined ? body : body.subarray(body.indexOf('"job":') + 6, -1);
  return { raw, headers: properties.headers, ...(job.at && { at: job.at }) };
}

/** A job at one of its attempts: as a worker would get it. */
function delivered({ raw, headers }, number) {
  const body = Buffer.from(withRetryCount(raw.toString(), number - 1));
  return parseJob(body, JSON.parse(body.toString()).queue, { headers });
}

/** One attempt at a job that was delivered. It ends as it would in a worker, and says how. */
class Delivery {
  #registry;
  #data;
  #job;
  #stopping = new AbortController();

  constructor(worker, data) {
    this.#registry = registryOf(worker);
    this.#data = data;
    this.#job = new Job(data, this.#stopping.signal);
  }

  /** The job as its handler gets it. */
  get job() {
    return this.#job;
  }

  /** Cancels the job, before it runs or while it does. */
  cancel() {
    this.#job.cancel(new Cancelled());
    return this;
  }

  /** Stops the worker, before the job runs or while it does. */
  stop() {
    this.#stopping.abort(new Stopping());
    return this;
  }

  /** Runs the job, with the hooks, and resolves to {status, failed, error, retryIn}. */
  async run() {
    const { outcome, error } = await this.#outcome();
    const { next, failed = false, after } = outcome;
    if (next) await this.#registry.ended(this.#job, outcome, error);
    if (outcome.died) await this.#registry.call('death', this.#job, error);
    return { status: next ?? 'success', failed, ...(error !== undefined && { error }), ...(next === 'retry' && { retryIn: after }) };
  }

  async #outcome() {
    const data = this.#data;
    const now = Date.now();
    if (data.expiresAt && data.expiresAt < now) return { outcome: expire(data, now), error: new MillraceError('expired before it began') };
    if (!this.#registry.has(data.class)) {
      const verdict = unknownClass(data.class);
      return { outcome: judge(data, verdict), error: Object.assign(new MillraceError(verdict.message), { stack: '' }) };
    }
    const { verdict = { kind: 'success' }, shown, end } = await this.#registry.perform(this.#job, data.timeout);
    return { outcome: judge(data, verdict, { now: end, stopping: this.#stopping.signal.aborted }), error: shown };
  }
}

/** One attempt at a job, {class, args, options}, as a client would enqueue it. `attempt` is its number, 1 for the first. */
class Attempt extends Delivery {
  constructor(worker, job, { attempt = 1 } = {}) {
    if (!Number.isInteger(attempt) || attempt < 1) throw new TypeError(`millrace: attempts are counted from 1: ${attempt}`);
    super(worker, delivered(written(resolved(job)), attempt));
  }
}

/** What stands for a Client; what is enqueued goes to a function. */
class Offline {
  #middleware = [];
  #enqueued;

  constructor(enqueued) {
    this.#enqueued = enqueued;
  }

  use(middleware) {
    this.#middleware.push(middleware);
    return this;
  }

  enqueue(job, args = [], options = {}) {
    return this.#push({ class: job, args, options });
  }

  enqueueAt(at, job, args = [], options = {}) {
    return this.#push({ class: job, args, options, at: at ?? null });
  }

  enqueueIn(seconds, job, args = [], options = {}) {
    return this.#push({ class: job, args, options, at: new Date(Date.now() + seconds * 1000) });
  }

  async enqueueBulk(jobs) {
    const results = [];
    for (const job of jobs) {
      try {
        results.push({ jid: await this.#push(job) });
      } catch (error) {
        results.push({ error });
      }
    }
    if (results.some((r) => r.error)) throw new BulkError(results);
    return results.map((r) => r.jid);
  }

  async close() {}

  async #push(given) {
    const job = resolved(given);
    const call = async (i) => {
      if (i === this.#middleware.length) return this.#enqueue(job);
      return (await this.#middleware[i](job, () => call(i + 1))) ?? '';
    };
    return call(0);
  }

  async #enqueue(job) {
    const message = written(job);
    await this.#enqueued(message);
    return JSON.parse(message.raw.toString()).jid;
  }
}

/** In place of a Client: enqueue makes the first attempt at once, and its error is the caller's. */
class Inline extends Offline {
  constructor(worker) {
    super(async (message) => {
      const { failed, error } = await new Delivery(worker, delivered(message, 1)).run();
      if (failed) throw error;
    });
  }
}

/** In place of a Client: enqueue collects, and drain runs. */
class Fake extends Offline {
  #worker;
  #waiting = [];
  #retries = [];
  #dead = [];
  #running;

  constructor(worker) {
    super(async (message) => {
      this.#waiting.push({ message, attempt: 1 });
    });
    this.#worker = worker;
  }

  /** What was enqueued and has not run, in order; of one class, if named. */
  jobs(job) {
    return this.#listed(this.#waiting, job);
  }

  /** Jobs that failed and are to be tried again: with `attempt`, the next one, `retryIn` and the `error`. */
  retries(job) {
    return this.#listed(this.#retries, job);
  }

  /** Jobs that were given up, with their `error`. */
  dead(job) {
    return this.#listed(this.#dead, job);
  }

  #listed(list, job) {
    const all = list.map(({ message: { raw, at }, ...rest }) => {
      const { jid, class: name, args, queue } = JSON.parse(raw.toString());
      return { jid, class: name, args, queue, raw, ...(at && { at }), ...rest };
    });
    const wanted = job?.class ?? job;
    return wanted === undefined ? all : all.filter(({ class: name }) => name === wanted);
  }

  /**
   * Runs what is there, and what that enqueues; with {retries: true} failed jobs too, at once, until they end well or are given up. All jobs
   * run: the errors of those that failed are thrown at the end, several as an AggregateError.
   */
  async drain({ retries = false } = {}) {
    const failures = [];
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

  async #attempt({ message, attempt }, retries) {
    if (!this.#worker) throw new TypeError('millrace: drain needs a worker: new Fake(worker)');
    this.#running = new Delivery(this.#worker, delivered(message, attempt));
    const { status, failed, error, retryIn } = await this.#running.run();
    this.#running = undefined;
    if (status === 'retry') this.#retries.push({ message, attempt: attempt + 1, retryIn, error });
    if (status === 'dead') this.#dead.push({ message, attempt, error });
    return failed && !(retries && status === 'retry') ? [error] : [];
  }

  /** Cancels the job that runs, if it has the jid, as an operator would. */
  cancel(jid) {
    if (this.#running?.job.jid !== jid) return false;
    this.#running.cancel();
    return true;
  }

  /** Forgets all jobs. */
  clear() {
    for (const list of [this.#waiting, this.#retries, this.#dead]) list.length = 0;
  }
}

module.exports = { Attempt, Fake, Inline };
