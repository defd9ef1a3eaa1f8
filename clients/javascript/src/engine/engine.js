'use strict';

const { randomBytes } = require('node:crypto');
const { Lane } = require('./lane.js');
const { Metrics } = require('./metrics.js');
const { Session } = require('./session.js');
const { Pauses, hostname, pause, unwelcome } = require('../connection.js');
const { seconds } = require('../format.js');
const { Hosts } = require('../hosts.js');

const LAST_CALL = 500; // ms that handlers have to end after their signals
const SETTLE_TIME = 2_000; // ms that outcomes on their way may take when the worker ends

/** An error without its backtrace: the other thread has that. */
const shortened = (error) => error && { errorClass: error.errorClass, message: error.message };

/** Something that happens once, and can be waited for. */
class Once {
  is = false;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.set = () => {
        this.is = true;
        resolve(undefined);
      };
    });
  }
}

/**
 * All of a worker but its handlers: they run in another thread, the program's own, so that the connection lives whatever they do. The host
 * is that thread: run(task), abort(task, why), ended(…), died(…), hook(name), stopping(), log(…).
 */
class Engine {
  process = randomBytes(8).toString('hex');
  hostname = hostname();
  startedAt = seconds();
  stopped = new Once();
  quieted = false;
  paused = new Set();
  running = new Map(); // by id
  owed = []; // jobs whose end is to be written down on the next connection
  #hurried = new Once();
  #lastId = 0;
  #idle = [];
  #consuming = false;

  constructor(config, host) {
    this.config = config;
    this.host = host;
    this.identity = `${this.hostname}:${process.pid}:${config.tag}`;
    this.hosts = new Hosts(config.urls, config.tls);
    this.metrics = new Metrics(this.identity);
    this.lanes = config.lanes.map((lane) => new Lane(this, lane));
    this.queues = [...new Set(this.lanes.flatMap((l) => l.queues))];
  }

  /** Works until it is stopped. Throws if the broker turns the worker away at its first attempt; all else is tried again. */
  async run() {
    const { identity, queues, config } = this;
    const concurrency = config.lanes.reduce((sum, lane) => sum + lane.concurrency, 0);
    this.log('info', 'worker started', { version: config.library, identity, queues, concurrency });
    try {
      await this.#work();
    } finally {
      this.log('info', 'worker stopped', { identity });
    }
  }

  async #work() {
    const pauses = new Pauses();
    for (let first = true; !this.stopped.is; ) {
      try {
        this.session = await this.#open();
        if (!this.session) break;
        first = false;
        pauses.reset();
        await this.session.run();
        return;
      } catch (error) {
        if (first && unwelcome(error)) throw new Error(`the broker turns us away: ${error.message}`, { cause: error });
        if (this.stopped.is) break;
        this.log('warn', 'no connection to the broker, trying again', { error: error.message });
      } finally {
        this.session = undefined;
      }
      await pause(pauses.next(), this.stopped.promise);
    }
    await this.wait();
    await this.handBack();
    await this.hook('shutdown');
  }

  /** A session, or nothing if the worker stops meanwhile. */
  #open() {
    return Promise.race([Session.open(this), this.stopped.promise]);
  }

  log(level, text, fields) {
    this.host.log(level, text, fields);
  }

  hook(name) {
    return this.host.hook(name);
  }

  /** A queue is consumed. */
  consuming() {
    if (this.#consuming) return;
    this.#consuming = true;
    this.hook('startup');
  }

  get state() {
    if (this.stopped.is) return 'stopping';
    return this.quieted ? 'quiet' : 'running';
  }

  add(task) {
    task.id = ++this.#lastId;
    task.lane.busy++;
    this.running.set(task.id, task);
  }

  /** A task needs its slot no more. */
  release(task) {
    if (!this.running.delete(task.id)) return;
    task.lane.busy--;
    if (task.failed && !task.died) this.host.forget(task);
    task.lane.freed();
    if (this.running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  dispatch(task) {
    this.host.run(task);
    if (task.abortedAs) this.host.abort(task, task.abortedAs);
  }

  /** A handler has ended. */
  verdict(id, verdict) {
    const task = this.running.get(id);
    if (task) task.verdict(verdict);
    else this.host.forget({ id }); // it was handed back
  }

  /** An attempt has not ended well. A promise that the failure hooks have run, if it failed and there are some. */
  ended(task, { next, failed, reason, after, due, error }) {
    const hooks = failed && this.config.failureHooks;
    return this.host.ended(task, { next, failed, reason, after, due, error: shortened(error) }, hooks);
  }

  died(task, error) {
    task.died = true;
    this.host.died(task, shortened(error));
  }

  quiet() {
    if (this.quieted) return;
    this.quieted = true;
    this.changed();
    this.hook('quiet');
  }

  stop() {
    if (this.stopped.is) {
      this.#hurried.set();
      return;
    }
    this.stopped.set();
    this.quiet();
    this.host.stopping();
    this.changed();
  }

  changed() {
    for (const lane of this.lanes) lane.changed();
    this.session?.beat();
  }

  /** Lets the running jobs end, within the stop timeout, and then tells those that are left that they have to. */
  async wait() {
    if (await pause(this.config.stopTimeout * 1000, this.#none(), this.#hurried.promise) || this.#hurried.is) {
      for (const task of this.running.values()) this.#abort(task, 'stopping');
      await pause(LAST_CALL, this.#none());
    }
  }

  #none() {
    if (this.running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Gives what still runs back to its queues, and waits for outcomes that are on their way. */
  async handBack() {
    const tasks = [...this.running.values()];
    for (const task of tasks) task.handBack();
    await pause(SETTLE_TIME, Promise.all(tasks.map((task) => task.settling())));
  }

  #abort(task, why) {
    task.abortedAs ??= why;
    if (task.since) this.host.abort(task, why);
  }

  learnPaused(queues) {
    this.paused = new Set(queues);
  }

  /** A message on jobs.control. */
  obey({ op, identity, queue, jid }) {
    if (identity !== '*' && identity !== this.identity) return;
    this.log('info', 'command', { op, queue, jid });
    if (op === 'quiet') this.quiet();
    else if (op === 'stop') this.stop();
    else if (op === 'pause' || op === 'resume') {
      if (op === 'pause') this.paused.add(queue);
      else this.paused.delete(queue);
      this.changed();
    } else if (op === 'cancel') {
      for (const task of this.running.values()) if (task.since && task.job.jid === jid) this.#abort(task, 'cancelled');
    }
  }
}

module.exports = { Engine };
