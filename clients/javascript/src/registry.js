'use strict';

const { Timeout } = require('./errors.js');
const { attempt, logEnd } = require('./log.js');
const { stackOf, textOf, verdictOf } = require('./verdict.js');

const LONGEST_TIMER = 2 ** 31 - 1; // ms
const HOOKS = ['startup', 'quiet', 'shutdown', 'failure', 'death'];
const OPTIONS = new Set(['retryIn', 'timeout']);

function check(ok, what) {
  if (!ok) throw new TypeError(`millrace: ${what}`);
}

/** The name of a class, which may be given as a definition. */
const nameOf = (job) => (typeof job === 'object' && job !== null ? job.class : job);

/** What a program registers with a worker: handlers, middleware and hooks. */
class Registry {
  #handlers = new Map();
  #middleware = [];
  #hooks = Object.fromEntries(HOOKS.map((name) => [name, []]));
  #sealed = false;

  constructor(log) {
    this.log = log;
  }

  handle(job, handler, options = {}) {
    const name = nameOf(job);
    check(typeof name === 'string' && name !== '', 'a handler needs the name of a class');
    check(typeof handler === 'function', `the handler of ${name} is no function`);
    for (const option of Object.keys(options)) check(OPTIONS.has(option), `the handler of ${name} has no option ${option}`);
    const { retryIn, timeout } = options;
    check(retryIn === undefined || typeof retryIn === 'function', `retryIn of ${name} is no function`);
    check(timeout === undefined || (Number.isFinite(timeout) && timeout >= 0), `timeout of ${name} is ${timeout}`);
    this.#open(`the handler of ${name}`);
    check(!this.#handlers.has(name), `class ${name} has a handler already`);
    this.#handlers.set(name, { handler, retryIn, timeout });
  }

  use(middleware) {
    check(typeof middleware === 'function', 'the middleware is no function');
    this.#open('middleware');
    this.#middleware.push(middleware);
  }

  on(hook, call) {
    check(HOOKS.includes(hook), `there is no hook ${hook}: there are ${HOOKS.join(', ')}`);
    check(typeof call === 'function', `the ${hook} hook is no function`);
    this.#open(`the ${hook} hook`);
    this.#hooks[hook].push(call);
  }

  #open(what) {
    if (this.#sealed) throw new Error(`millrace: ${what} comes too late: register it before run()`);
  }

  /** From here on nothing can be registered: the worker runs. */
  seal() {
    this.#sealed = true;
  }

  get classes() {
    return [...this.#handlers.keys()];
  }

  has(className) {
    return this.#handlers.has(className);
  }

  hasHook(hook) {
    return this.#hooks[hook].length > 0;
  }

  /** Calls the functions of a hook. One that fails is logged. */
  async call(hook, ...args) {
    for (const call of this.#hooks[hook]) {
      try {
        await call(...args);
      } catch (error) {
        this.log.error(`a ${hook} hook failed`, { error: textOf(error), stack: stackOf(error) });
      }
    }
  }

  /** Runs a job in its handler: when that began and ended, and if it failed, the verdict and the error to show. */
  async perform(job, ownTimeout) {
    const { handler, retryIn, timeout } = this.#handlers.get(job.class);
    const limit = ownTimeout || timeout;
    const timer = limit && setTimeout(() => job.cancel(new Timeout(limit)), Math.min(limit * 1000, LONGEST_TIMER));
    const begin = Date.now();
    let end;
    try {
      try {
        const call = (i) => (i === this.#middleware.length ? handler(job) : this.#middleware[i](job, () => call(i + 1)));
        await call(0);
      } finally {
        end = Date.now();
        clearTimeout(timer);
      }
      return { begin, end };
    } catch (error) {
      // A handler that held the thread has kept its own timer from running.
      if (limit && end - begin >= limit * 1000) job.cancel(new Timeout(limit));
      const report = (fault) => this.log.warn('retryIn failed, the default backoff is used', {
        ...attempt(job), error: textOf(fault), stack: stackOf(fault),
      });
      return { begin, end, ...(await verdictOf(error, job, retryIn, report)) };
    }
  }

  /** Logs how an attempt ended, and calls the failure hooks if it failed. */
  async ended(job, outcome, error) {
    logEnd(this.log, job, outcome, stackOf(error));
    if (outcome.failed) await this.call('failure', job, error);
  }
}

module.exports = { Registry, nameOf };
