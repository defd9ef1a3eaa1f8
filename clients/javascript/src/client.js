'use strict';

const { Pauses, close, hostname, pause, unwelcome } = require('./connection.js');
const { resolved } = require('./define.js');
const { BulkError, Closed, Unconfirmed, Unreachable } = require('./errors.js');
const { DEFAULT_URL, Hosts, splitHosts } = require('./hosts.js');
const { Lost, Publisher } = require('./publisher.js');
const { tlsOptions } = require('./tls.js');
const { prepare } = require('./write.js');

const TIMEOUT = 30; // s
const LONGEST_TIMER = 2 ** 31 - 1; // ms
const AGAIN = '; the job may have arrived';

/** When a publish has to be answered, as a promise that can be raced. */
class Deadline {
  constructor(seconds) {
    this.passed = false;
    this.promise = new Promise((resolve) => {
      this.timer = setTimeout(() => {
        this.passed = true;
        resolve(this);
      }, Math.min(seconds * 1000, LONGEST_TIMER));
    });
  }

  /** The promise's value; or this deadline, if it passes before. */
  or(promise) {
    return Promise.race([promise, this.promise]);
  }

  clear() {
    clearTimeout(this.timer);
  }
}

/** Enqueues jobs. It connects when it has to, and connects again when a connection is lost. */
class Client {
  #hosts;
  #timeout;
  #middleware = [];
  #publisher;
  #connection;
  #connecting;
  #waiters = 0;
  #welcomed = false;
  #closed = false;
  #closing;
  #ended = new Promise((resolve) => {
    this.#closing = resolve;
  });

  constructor(options = /** @type {any} */ ({})) {
    const { url, timeout = TIMEOUT, tls, ...others } = { url: DEFAULT_URL, ...options };
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw new TypeError(`millrace: there is no option ${unknown}`);
    if (!(Number.isFinite(timeout) && timeout > 0)) throw new TypeError(`millrace: timeout is ${timeout}`);
    const urls = splitHosts(url);
    this.#hosts = new Hosts(urls, tlsOptions(tls, urls));
    this.#timeout = timeout;
  }

  /** Wraps each publish: async (job, next) => next(). The first is the outermost. Not calling next publishes nothing; the jid is then ''. */
  use(middleware) {
    this.#middleware.push(middleware);
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

  /** Publishes many jobs, {class, args, options, at}, and gives their jids when all are answered. Throws BulkError if some failed. */
  async enqueueBulk(jobs, { deadline = this.#timeout } = {}) {
    const until = new Deadline(deadline);
    try {
      const settled = await Promise.allSettled(jobs.map((job) => this.#wrapped(resolved(job), until)));
      const results = settled.map((r) => (r.status === 'fulfilled' ? { jid: r.value } : { error: r.reason }));
      if (results.some((r) => r.error)) throw new BulkError(results);
      return results.map((r) => r.jid);
    } finally {
      until.clear();
    }
  }

  /** Ends the connection. Publishes that wait for an answer fail. */
  async close() {
    this.#closed = true;
    this.#closing();
    if (this.#connection) await close(this.#connection);
  }

  async #push(job) {
    const until = new Deadline(job.options.deadline ?? this.#timeout);
    try {
      return await this.#wrapped(resolved(job), until);
    } finally {
      until.clear();
    }
  }

  async #wrapped(job, until) {
    const call = async (i) => {
      if (i === this.#middleware.length) return this.#publish(job, until);
      return (await this.#middleware[i](job, () => call(i + 1))) ?? '';
    };
    return call(0);
  }

  /** Publishes the same bytes again and again, on new connections, until they are answered. */
  async #publish(job, until) {
    const message = prepare(job);
    for (let sent = false; ; ) {
      const publisher = this.#current() ?? (await this.#connect(until, sent ? message.jid : undefined));
      const answer = publisher.publish(message);
      answer.catch(() => {}); // whoever waits may have gone
      sent = true;
      try {
        if ((await until.or(answer)) === until) throw new Unconfirmed(`the broker did not answer before the deadline${AGAIN}`, message.jid);
        return message.jid;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        if (this.#closed) throw new Unconfirmed(`the client was closed before the broker answered${AGAIN}`, message.jid, { cause: error });
      }
    }
  }

  #current() {
    if (this.#closed) throw new Closed('the client is closed');
    return this.#publisher?.gone ? undefined : this.#publisher;
  }

  /** A publisher on a new connection, for a job that was never sent, or for that with the jid, which was. */
  async #connect(until, jid) {
    try {
      return await this.#reconnected(until);
    } catch (error) {
      if (jid === undefined) throw error;
      throw new Unconfirmed(`the connection was lost before the broker answered${AGAIN}`, jid, { cause: error });
    }
  }

  async #reconnected(until) {
    this.#connecting ??= this.#reconnect().finally(() => {
      this.#connecting = undefined;
    });
    this.#connecting.catch(() => {}); // whoever waits may have gone
    this.#waiters++;
    const publisher = await until.or(this.#connecting).finally(() => this.#waiters--);
    if (publisher !== until) return publisher;
    throw new Unreachable(`no connection before the deadline: ${this.why ?? 'the broker does not answer'}`);
  }

  async #reconnect() {
    for (const pauses = new Pauses(); ; ) {
      const old = this.#connection;
      this.#connection = undefined;
      if (old) close(old);
      const current = this.#current();
      if (current) return current;
      try {
        return await this.#dial();
      } catch (error) {
        this.why = error.message;
        if (!this.#welcomed && unwelcome(error)) throw new Unreachable(`the broker turns us away: ${error.message}`, { cause: error });
      }
      await pause(pauses.next(), this.#ended);
      if (this.#waiters === 0) throw new Unreachable(`nobody waits any more: ${this.why}`);
    }
  }

  async #dial() {
    const connection = await this.#hosts.dial(`millrace producer ${hostname()}:${process.pid}`);
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

module.exports = { Client };
