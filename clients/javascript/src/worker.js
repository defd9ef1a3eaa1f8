'use strict';

const { Worker: Thread } = require('node:worker_threads');
const { Cancelled, Stopping, Timeout } = require('./errors.js');
const { Job } = require('./job.js');
const { Outbox, jobs } = require('./outbox.js');
const { settings } = require('./settings.js');
const { threadFile } = require('./thread-file.js');
const { verdictOf } = require('./verdict.js');
const { VERSION } = require('./version.js');

const LONGEST_TIMER = 2 ** 31 - 1; // ms
const LONGEST_TURN = 5; // ms for which jobs are begun before the ends of others are sent
const HOOKS = ['startup', 'quiet', 'shutdown', 'death'];
const QUIET_CONSOLE = { info() {}, warn: console.warn, error: console.error };

/**
 * Runs jobs. Handlers run in the thread that calls run(); everything else, the broker's connection first of all, in another, so that a
 * handler which blocks its thread does not cost the connection.
 */
class Worker {
  #config;
  #logger;
  #handlers = new Map();
  #middleware = [];
  #hooks = Object.fromEntries(HOOKS.map((name) => [name, []]));
  #stopping = new AbortController();
  #stops = 0;
  #quiet = false;
  #thread;
  #jobs = new Map();
  #errors = new Map(); // of failed jobs, until it is known what became of them
  #inbox = [];
  #outbox = new Outbox((batch) => this.#thread?.postMessage(batch));
  #end;

  constructor(options) {
    this.#config = settings(options);
    this.#logger = options.logger ?? QUIET_CONSOLE;
  }

  /** Registers the handler of a class: async (job) => …. Options: retryIn(count, error, job) → seconds, timeout (s). */
  handle(className, handler, options = {}) {
    if (typeof handler !== 'function') throw new TypeError(`millrace: the handler of ${className} is no function`);
    this.#handlers.set(className, { handler, ...options });
    return this;
  }

  /** Wraps all handlers: async (job, next) => next(). The first is the outermost. */
  use(middleware) {
    this.#middleware.push(middleware);
    return this;
  }

  /** Calls a function at startup, quiet, shutdown, or death(job, error). */
  on(hook, call) {
    if (!HOOKS.includes(hook)) throw new TypeError(`millrace: there is no hook ${hook}`);
    this.#hooks[hook].push(call);
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
      workerData: { ...config, library: VERSION, classes: [...this.#handlers.keys()] },
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
        this.#call(message.name).then(() => this.#post({ t: 'hooked', name: message.name }));
        break;
      case 'died':
        this.#died(message);
        break;
      case 'forget':
        this.#errors.delete(message.id);
        break;
      case 'log':
        this.#logger[message.level](`millrace: ${message.text}`, message.fields);
        break;
      case 'end':
        this.#end(message.error);
    }
  }

  #died({ id, job, error }) {
    const known = this.#errors.get(id) ?? Object.assign(new Error(error.message), { name: error.errorClass });
    this.#errors.delete(id);
    this.#call('death', new Job(job, this.#stopping.signal), known);
  }

  /** Calls the functions of a hook. One that fails is logged. */
  async #call(name, ...args) {
    for (const call of this.#hooks[name]) {
      try {
        await call(...args);
      } catch (error) {
        this.#logger.error(`millrace: a ${name} hook failed`, { error });
      }
    }
  }

  async #run(id, data) {
    const job = new Job(data, this.#stopping.signal);
    const { handler, retryIn, timeout } = this.#handlers.get(job.class);
    this.#jobs.set(id, job);
    const limit = data.timeout || timeout;
    const timer = limit && setTimeout(() => job.cancel(new Timeout(limit)), Math.min(limit * 1000, LONGEST_TIMER));
    const begin = Date.now();
    let end;
    let verdict;
    try {
      const call = (i) => (i === this.#middleware.length ? handler(job) : this.#middleware[i](job, () => call(i + 1)));
      await call(0);
      end = Date.now();
    } catch (error) {
      end = Date.now();
      // A handler that held the thread has kept its own timer from running.
      if (limit && end - begin >= limit * 1000) job.cancel(new Timeout(limit));
      verdict = await verdictOf(error, job, retryIn);
      this.#errors.set(id, error);
    }
    clearTimeout(timer);
    this.#jobs.delete(id);
    if (!verdict) {
      this.#outbox.ended(id, begin, end);
      return;
    }
    if (data.backtrace === 0 && verdict.backtrace) verdict.backtrace = [];
    this.#post({ t: 'verdict', id, verdict: { ...verdict, begin, end } });
  }
}

module.exports = { Worker };
