import type { JobDefinition } from './define.js';
import { Timeout } from './errors.js';
import type { Handler, HandlerOptions, WorkerMiddleware } from './handler.js';
import type { Job } from './job.js';
import { attempt, logEnd } from './log.js';
import type { End, Times } from './outbox.js';
import type { Logger } from './types.js';
import { fieldsOf, stackOf, verdictOf, type Judged } from './verdict.js';

const LONGEST_TIMER = 2 ** 31 - 1; // ms
const HOOKS = ['startup', 'quiet', 'shutdown', 'failure', 'death'] as const;
const OPTIONS = new Set<string>(['retryIn', 'timeout']);

export type Hook = (typeof HOOKS)[number];
type HookCall = (...args: any[]) => unknown;

function check(ok: unknown, what: string): asserts ok {
  if (!ok) throw new TypeError(`millrace: ${what}`);
}

/** Returns the name of a class, also of a definition. */
export const nameOf = (job: string | JobDefinition): string => (typeof job === 'object' && job !== null ? job.class : job);

/** The handlers, middleware and hooks that a program registers with a worker. */
export class Registry {
  #handlers = new Map<string, HandlerOptions & { handler: Handler }>();
  #middleware: WorkerMiddleware[] = [];
  #hooks = Object.fromEntries(HOOKS.map((name) => [name, []])) as unknown as Record<Hook, HookCall[]>;
  #sealed = false;
  log: Logger;

  constructor(log: Logger) {
    this.log = log;
  }

  handle(job: string | JobDefinition, handler: Handler, options: HandlerOptions = {}): void {
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

  use(middleware: WorkerMiddleware): void {
    check(typeof middleware === 'function', 'the middleware is no function');
    this.#open('middleware');
    this.#middleware.push(middleware);
  }

  on(hook: Hook, call: HookCall): void {
    check(HOOKS.includes(hook), `there is no hook ${hook}: there are ${HOOKS.join(', ')}`);
    check(typeof call === 'function', `the ${hook} hook is no function`);
    this.#open(`the ${hook} hook`);
    this.#hooks[hook].push(call);
  }

  #open(what: string): void {
    if (this.#sealed) throw new Error(`millrace: ${what} comes too late: register it before run()`);
  }

  /** Called when the worker runs. From then on, nothing can be registered. */
  seal(): void {
    this.#sealed = true;
  }

  get classes(): string[] {
    return [...this.#handlers.keys()];
  }

  has(className: string): boolean {
    return this.#handlers.has(className);
  }

  hasHook(hook: Hook): boolean {
    return this.#hooks[hook].length > 0;
  }

  /** Calls the functions of a hook, and logs their errors. */
  async call(hook: Hook, ...args: unknown[]): Promise<void> {
    for (const call of this.#hooks[hook]) {
      try {
        await call(...args);
      } catch (error) {
        this.log.error(`a ${hook} hook failed`, fieldsOf(error));
      }
    }
  }

  /**
   * Runs a job in its handler. Resolves to the times of its begin and end. If it failed, also to
   * the verdict and the error to show.
   */
  async perform(job: Job, ownTimeout: number): Promise<Times & Partial<Judged>> {
    const { handler, retryIn, timeout } = this.#handlers.get(job.class)!;
    const limit = ownTimeout || timeout;
    const timer = limit ? setTimeout(() => job.cancel(new Timeout(limit)), Math.min(limit * 1000, LONGEST_TIMER)) : undefined;
    const begin = Date.now();
    let end = begin;
    try {
      try {
        const call = (i: number): any => {
          const middleware = this.#middleware[i];
          return middleware ? middleware(job, () => call(i + 1)) : handler(job);
        };
        await call(0);
      } finally {
        end = Date.now();
        clearTimeout(timer);
      }
      return { begin, end };
    } catch (error) {
      // A handler that blocked the thread has also delayed its own timer.
      if (limit && end - begin >= limit * 1000) job.cancel(new Timeout(limit));
      const report = (fault: unknown) => this.log.warn('retryIn failed, the default backoff is used', { ...attempt(job), ...fieldsOf(fault) });
      return { begin, end, ...(await verdictOf(error, job, retryIn, report)) };
    }
  }

  /** Logs how an attempt ended, and calls the failure hooks if it failed. */
  async ended(job: Job, outcome: End, error: unknown): Promise<void> {
    logEnd(this.log, job, outcome, stackOf(error));
    if (outcome.failed) await this.call('failure', job, error);
  }
}
