'use strict';

const { Pauses, close, hostname, pause, unwelcome } = require('./connection.js');
const { Incomplete, Unconfirmed, Unreachable } = require('./errors.js');
const { Hosts, splitHosts } = require('./hosts.js');
const { Lost, Publisher } = require('./publisher.js');
const { prepare } = require('./write.js');

const TIMEOUT = 30; // s

/** When a publish has to be answered, as a promise that can be raced. */
class Deadline {
  constructor(seconds) {
    this.passed = false;
    this.promise = new Promise((resolve) => {
      this.timer = setTimeout(() => {
        this.passed = true;
        resolve(this);
      }, seconds * 1000);
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

  constructor({ url, timeout = TIMEOUT } = /** @type {any} */ ({})) {
    this.#hosts = new Hosts(splitHosts(url));
    this.#timeout = timeout;
  }

  /** Wraps each publish: async (job, next) => next(). The first is the outermost. Not calling next publishes nothing. */
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

  /** Publishes many jobs, {class, args, options, at}, and gives their jids when all are answered. Throws Incomplete if some failed. */
  async enqueueBulk(jobs, { deadline = this.#timeout } = {}) {
    const until = new Deadline(deadline);
    try {
      const settled = await Promise.allSettled(jobs.map((job) => this.#wrapped({ args: [], ...job, options: { ...job.options } }, until)));
      const results = settled.map((r) => (r.status === 'fulfilled' ? { jid: r.value } : { error: r.reason }));
      if (results.some((r) => r.error)) throw new Incomplete(results);
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
      return await this.#wrapped({ ...job, options: { ...job.options } }, until);
    } finally {
      until.clear();
    }
  }

  async #wrapped(job, until) {
    const call = (i) => (i === this.#middleware.length ? this.#publish(job, until) : this.#middleware[i](job, () => call(i + 1)));
    return (await call(0)) ?? null;
  }

  /** Publishes the same bytes again and again, on new connections, until they are answered. */
  async #publish(job, until) {
    const message = prepare(job);
    for (let sent = false; ; ) {
      const publisher = this.#open() ?? (await this.#connect(until, sent));
      const answer = publisher.publish(message);
      answer.catch(() => {}); // whoever waits may have gone
      sent = true;
      try {
        if ((await until.or(answer)) === until) throw new Unconfirmed(`${job.class} was sent, and not answered before the deadline`);
        return message.jid;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        if (this.#closed) throw new Unconfirmed('the client was closed', { cause: error });
      }
    }
  }

  #open() {
    if (this.#closed) throw new Unreachable('the client is closed');
    return this.#publisher?.gone ? undefined : this.#publisher;
  }

  async #connect(until, sent) {
    this.#connecting ??= this.#reconnect().finally(() => {
      this.#connecting = undefined;
    });
    this.#connecting.catch(() => {}); // whoever waits may have gone
    this.#waiters++;
    const publisher = await until.or(this.#connecting).finally(() => this.#waiters--);
    if (publisher !== until) return publisher;
    if (sent) throw new Unconfirmed('it was sent, and the connection was lost until the deadline');
    throw new Unreachable(`no connection before the deadline: ${this.why ?? 'the broker does not answer'}`);
  }

  async #reconnect() {
    for (const pauses = new Pauses(); ; ) {
      const old = this.#connection;
      this.#connection = undefined;
      if (old) close(old);
      const open = this.#open();
      if (open) return open;
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
      throw new Unreachable('the client is closed');
    }
    this.#connection = connection;
    this.#welcomed = true;
    this.#publisher = await Publisher.open(connection);
    return this.#publisher;
  }
}

module.exports = { Client };
