'use strict';

const { Worker: Thread } = require('node:worker_threads');
const { Cancelled, Stopping } = require('./errors.js');
const { Job } = require('./job.js');
const { loggerOf } = require('./log.js');
const { Outbox, jobs } = require('./outbox.js');
const { Registry } = require('./registry.js');
const { settings } = require('./settings.js');
const { threadFile } = require('./thread-file.js');
const { VERSION } = require('./version.js');

const LONGEST_TURN = 5; // ms for which jobs are begun before the ends of others are sent

/** An error that no handler threw, as a record shows it. */
function unthrown({ errorClass, message }) {
  return Object.assign(new Error(message), { name: errorClass, stack: `${errorClass}: ${message}` });
}

/** What is registered with a worker. */
let registryOf;

/**
 * Runs jobs. Handlers run in the thread that calls run(); everything else, the broker's connection first of all, in another, so that a
 * handler which blocks its thread does not cost the connection.
 */
class Worker {
  #config;
  #log;
  #registry;
  #stopping = new AbortController();
  #stops = 0;
  #quiet = false;
  #thread;
  #jobs = new Map();
  #failures = new Map(); // jobs that failed, and why, until their outcomes are known to the broker
  #inbox = [];
  #outbox = new Outbox((batch) => this.#thread?.postMessage(batch));
  #end;

  static {
    registryOf = (worker) => worker.#registry;
  }

  constructor(options = /** @type {any} */ ({})) {
    this.#config = settings(options);
    this.#log = loggerOf(options.logger);
    this.#registry = new Registry(this.#log);
  }

  /**
   * Registers the handler of a class, or of a definition: async (job) => …. Options: retryIn(count, error, job) → seconds, timeout (s). A class
   * has one handler, and none can be registered once the worker runs.
   */
  handle(job, handler, options) {
    this.#registry.handle(job, handler, options);
    return this;
  }

  /** Wraps all handlers: async (job, next) => next(). The first is the outermost. */
  use(middleware) {
    this.#registry.use(middleware);
    return this;
  }

  /** Calls a function at startup, quiet, shutdown, failure(job, error) or death(job, error). */
  on(hook, call) {
    this.#registry.on(hook, call);
    return this;
  }

  /** Takes no more jobs. What runs goes on. */
  quiet() {
    this.#quiet = true;
    this.#post({ t: 'quiet' });
  }

  /** Ends run() once all jobs have ended, or the stop timeout is over and what still runs was handed back. Twice: do not wait. */
  stop() {
    this.#stops++;
    this.#stopping.abort(new Stopping());
    this.#post({ t: 'stop' });
  }

  /** Works until it has stopped. With {signals: true} SIGTSTP makes it quiet, SIGTERM and SIGINT stop it. */
  async run({ signals = false } = {}) {
    if (this.#thread) throw new Error('millrace: a worker runs once');
    this.#registry.seal();
    const release = signals ? this.#listen() : () => {};
    try {
      await this.#work();
    } finally {
      release();
    }
  }

  #listen() {
    const quiet = () => this.quiet();
    const stop = () => this.stop();
    const all = { SIGTSTP: quiet, SIGTERM: stop, SIGINT: stop };
    for (const signal in all) process.on(signal, all[signal]);
    return () => {
      for (const signal in all) process.off(signal, all[signal]);
    };
  }

  async #work() {
    const { thread, ...config } = this.#config;
    this.#thread = new Thread(threadFile(thread), {
      workerData: { ...config, library: VERSION, classes: this.#registry.classes, failureHooks: this.#registry.hasHook('failure') },
      // Node's own flags are inherited, and would be refused if they were given; that of `node -e` cannot go with a file.
      ...(process.execArgv.some((arg) => arg.startsWith('--input-type')) && { execArgv: [] }),
    });
    try {
      await new Promise((resolve, reject) => {
        this.#end = (error) => (error ? reject(new Error(`millrace: ${error}`)) : resolve(undefined));
        this.#thread.on('message', (batch) => this.#receive(batch));
        this.#thread.on('error', reject);
        this.#thread.on('exit', () => {
          for (const message of this.#inbox.splice(0)) this.#obey(message); // the end, perhaps
          reject(new Error('millrace: the thread of the connection has ended'));
        });
        if (this.#quiet) this.#post({ t: 'quiet' });
        for (let i = 0; i < this.#stops; i++) this.#post({ t: 'stop' });
      });
    } finally {
      this.#thread.terminate();
    }
  }

  #post(message) {
    if (this.#thread) this.#outbox.post(message);
  }

  #receive(batch) {
    this.#inbox.push(...jobs(batch));
    this.#proceed();
  }

  /** Does what the engine says. When handlers have held the thread, what others before them came to is sent before it goes on. */
  #proceed() {
    const began = Date.now();
    while (this.#inbox.length > 0) {
      this.#obey(this.#inbox.shift());
      if (Date.now() - began > LONGEST_TURN) {
        setImmediate(() => {
          this.#outbox.flush();
          this.#proceed();
        });
        return;
      }
    }
  }

  #obey(message) {
    switch (message.t) {
      case 'run':
        this.#run(message.id, message.job);
        break;
      case 'abort':
        this.#jobs.get(message.id)?.cancel(message.why === 'cancelled' ? new Cancelled() : new Stopping());
        break;
      case 'stopping':
        this.#stopping.abort(new Stopping());
        break;
      case 'hook':
        this.#registry.call(message.name).then(() => this.#post({ t: 'hooked', name: message.name }));
        break;
      case 'ended':
        this.#ended(message);
        break;
      case 'died':
        this.#died(message);
        break;
      case 'forget':
        this.#failures.delete(message.id);
        break;
      case 'log':
        this.#log[message.level](message.text, message.fields);
        break;
      case 'end':
        this.#end(message.error);
    }
  }

  async #ended({ id, job, outcome, wait }) {
    const failure = this.#failure(id, job, outcome.error);
    await this.#registry.ended(failure.job, outcome, failure.error);
    if (wait) this.#post({ t: 'hooked', name: `ended ${id}` });
  }

  #died({ id, job, error }) {
    const failure = this.#failure(id, job, error);
    this.#failures.delete(id);
    this.#registry.call('death', failure.job, failure.error);
  }

  /** A job and why it failed, also if it never came to its handler. */
  #failure(id, data, error) {
    return this.#failures.get(id) ?? { job: new Job(data, this.#stopping.signal), error: error && unthrown(error) };
  }

  async #run(id, data) {
    const job = new Job(data, this.#stopping.signal);
    this.#jobs.set(id, job);
    const { begin, end, verdict, shown } = await this.#registry.perform(job, data.timeout);
    this.#jobs.delete(id);
    if (!verdict) {
      this.#outbox.ended(id, begin, end);
      return;
    }
    this.#failures.set(id, { job, error: shown });
    this.#post({ t: 'verdict', id, verdict: { ...verdict, backtrace: verdict.backtrace?.slice(0, data.backtrace), begin, end } });
  }
}

module.exports = { Worker, registryOf };
