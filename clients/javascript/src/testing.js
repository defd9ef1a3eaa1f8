'use strict';

/** Test helpers without a broker: what stands for a Client runs jobs at once, or collects them. Jobs are checked as by a real one. */
const { Job } = require('./job.js');
const { Incomplete, MillraceError } = require('./errors.js');
const { parseJob } = require('./parse.js');
const { prepare } = require('./write.js');

const ENQUEUED = Symbol('enqueued');

/** A middleware chain around what is last. */
const chain = (middleware, job, last) => {
  const call = async (i) => (i === middleware.length ? last() : middleware[i](job, () => call(i + 1)));
  return call(0);
};

/** What both have in common; what is enqueued goes to a method that they bring. */
class Testing {
  #handlers = new Map();
  #client = [];
  #worker = [];

  handle(className, handler) {
    this.#handlers.set(className, handler);
    return this;
  }

  use(middleware) {
    this.#client.push(middleware);
    return this;
  }

  useWorker(middleware) {
    this.#worker.push(middleware);
    return this;
  }

  enqueue(className, args = [], options = {}) {
    return this.#push({ class: className, args, options });
  }

  enqueueAt(at, className, args = [], options = {}) {
    return this.#push({ class: className, args, options, at: at ?? null });
  }

  enqueueIn(seconds, className, args = [], options = {}) {
    return this.#push({ class: className, args, options, at: new Date(Date.now() + seconds * 1000) });
  }

  async enqueueBulk(jobs) {
    const results = [];
    for (const job of jobs) {
      try {
        results.push({ jid: await this.#push({ args: [], ...job, options: { ...job.options } }) });
      } catch (error) {
        results.push({ error });
      }
    }
    if (results.some((r) => r.error)) throw new Incomplete(results);
    return results.map((r) => r.jid);
  }

  async close() {}

  async #push(job) {
    const publish = async () => {
      const { jid, body } = prepare(job);
      const raw = job.at === undefined ? body : body.subarray(body.indexOf('"job":') + 6, -1);
      await this[ENQUEUED]({ jid, raw, headers: job.options.traceparent ? { traceparent: job.options.traceparent } : {}, at: job.at });
      return jid;
    };
    return (await chain(this.#client, job, publish)) ?? null;
  }

  /** Runs a job in its handler. */
  async perform({ raw, headers }) {
    const data = parseJob(raw, JSON.parse(raw.toString()).queue, { headers });
    const handler = this.#handlers.get(data.class);
    if (!handler) throw new MillraceError(`no handler for class ${data.class}`);
    const job = new Job(data, new AbortController().signal);
    await chain(this.#worker, job, () => handler(job));
  }
}

/** enqueue runs the handler at once; its error is the caller's. */
class InlineClient extends Testing {
  [ENQUEUED](job) {
    return this.perform(job);
  }
}

/** enqueue collects. */
class FakeClient extends Testing {
  #collected = [];

  async [ENQUEUED](job) {
    this.#collected.push(job);
  }

  /** What was enqueued and has not run, in order; of one class, if named. */
  jobs(className) {
    const all = this.#collected.map(({ jid, raw, at }) => {
      const { class: name, args, queue } = JSON.parse(raw.toString());
      return { jid, class: name, args, queue, raw, ...(at && { at }) };
    });
    return className === undefined ? all : all.filter((job) => job.class === className);
  }

  /** Runs what is there, and what that enqueues. */
  async drain() {
    let n = 0;
    for (; this.#collected.length > 0; n++) await this.perform(this.#collected.shift());
    return n;
  }

  clear() {
    this.#collected = [];
  }
}

module.exports = { InlineClient, FakeClient };
