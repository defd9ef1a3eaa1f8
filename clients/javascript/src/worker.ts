import { Worker as Thread } from 'node:worker_threads';
import type { JobDefinition } from './define.js';
import { Cancelled, Stopping, messageOf } from './errors.js';
import { askFor } from './hosts.js';
import { Job } from './job.js';
import { loggerOf } from './log.js';
import type { ThreadData } from './millrace-thread.js';
import type { Failure } from './outcome.js';
import { Outbox, jobs, type Batch, type JobData, type ToEngine, type ToHandlers } from './outbox.js';
import { Registry, type Hook } from './registry.js';
import { settings, type Settings } from './settings.js';
import { threadFile } from './thread-file.js';
import type { Handler, HandlerOptions, Logger, WorkerMiddleware, WorkerOptions } from './types.js';
import { VERSION } from './version.js';

const LONGEST_TURN = 5; // ms for which jobs are begun before the ends of others are sent

/** An error that no handler threw, as a record shows it. */
function unthrown({ errorClass, message }: Failure): Error {
  return Object.assign(new Error(message), { name: errorClass, stack: `${errorClass}: ${message}` });
}

/** What is registered with a worker. */
export let registryOf: (worker: Worker) => Registry;

/**
 * Runs jobs. Handlers run in the thread that calls run(); everything else, the broker's connection first of all, in another, so that a
 * handler which blocks its thread does not cost the connection.
 */
export class Worker {
  #config: Settings;
  #log: Logger;
  #registry: Registry;
  #stopping = new AbortController();
  #stops = 0;
  #quiet = false;
  #thread: Thread | undefined;
  #jobs = new Map<number, Job>();
  #failures = new Map<number, { job: Job; error: unknown }>(); // jobs that failed, and why, until their outcomes are known to the broker
  #inbox: ToHandlers[] = [];
  #outbox = new Outbox<ToEngine>((batch) => this.#thread?.postMessage(batch));
  #end!: (error?: string) => void;

  static {
    registryOf = (worker) => worker.#registry;
  }

  constructor(options: WorkerOptions = {}) {
    this.#config = settings(options);
    this.#log = loggerOf(options.logger);
    this.#registry = new Registry(this.#log);
  }

  /** Registers the handler of a class, or of a definition. It throws if the class has one already, or if the worker runs. */
  handle<A extends readonly unknown[]>(job: JobDefinition<A>, handler: Handler<A>, options?: HandlerOptions<A>): this;
  handle(className: string, handler: Handler, options?: HandlerOptions): this;
  handle(job: string | JobDefinition, handler: Handler, options?: HandlerOptions): this {
    this.#registry.handle(job, handler, options);
    return this;
  }

  /** Adds middleware, which wraps all handlers, before run(): async (job, next) => next(). The first is the outermost. */
  use(middleware: WorkerMiddleware): this {
    this.#registry.use(middleware);
    return this;
  }

  /** Calls a function when the worker consumes for the first time, is quiet, or has handed over everything. */
  on(hook: 'startup' | 'quiet' | 'shutdown', call: () => unknown): this;
  /**
   * failure: calls a function after each failed attempt, before its retry or death is published, which waits for it at most 5 s.
   * death: calls a function when a job was given up. What a hook throws is logged, and changes nothing.
   */
  on(hook: 'failure' | 'death', call: (job: Job, error: any) => unknown): this;
  on(hook: Hook, call: (...args: any[]) => unknown): this {
    this.#registry.on(hook, call);
    return this;
  }

  /** Takes no more jobs. What runs goes on. */
  quiet(): void {
    this.#quiet = true;
    this.#post({ t: 'quiet' });
  }

  /** Ends run() once all jobs have ended, or stopTimeout is over and what still runs was handed back. Twice: do not wait. */
  stop(): void {
    this.#stops++;
    this.#stopping.abort(new Stopping());
    this.#post({ t: 'stop' });
  }

  /**
   * Works until it has stopped. With signals, SIGTSTP makes it quiet, and SIGTERM and SIGINT stop it. Throws if the broker turns the
   * worker away at its first attempt; everything else is tried again.
   */
  async run({ signals = false }: { signals?: boolean } = {}): Promise<void> {
    if (this.#thread) throw new Error('millrace: a worker runs once');
    this.#registry.seal();
    const release = signals ? this.#listen() : () => {};
    try {
      await this.#work();
    } finally {
      release();
    }
  }

  #listen(): () => void {
    const quiet = () => this.quiet();
    const stop = () => this.stop();
    const all = [['SIGTSTP', quiet], ['SIGTERM', stop], ['SIGINT', stop]] as const;
    for (const [signal, call] of all) process.on(signal, call);
    return () => {
      for (const [signal, call] of all) process.off(signal, call);
    };
  }

  async #work(): Promise<void> {
    const { thread: file, credentials, ...config } = this.#config;
    const thread = new Thread(threadFile(file), {
      workerData: { ...config, credentials: credentials !== undefined, library: VERSION, classes: this.#registry.classes, failureHooks: this.#registry.hasHook('failure') } satisfies ThreadData,
      // Node's own flags are inherited, and would be refused if they were given; that of `node -e` cannot go with a file.
      ...(process.execArgv.some((arg) => arg.startsWith('--input-type')) && { execArgv: [] }),
    });
    this.#thread = thread;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#end = (error) => (error ? reject(new Error(`millrace: ${error}`)) : resolve());
        thread.on('message', (batch: Batch<ToHandlers>) => this.#receive(batch));
        thread.on('error', reject);
        thread.on('exit', () => {
          for (const message of this.#inbox.splice(0)) this.#obey(message); // the end, perhaps
          reject(new Error('millrace: the thread of the connection has ended'));
        });
        if (this.#quiet) this.#post({ t: 'quiet' });
        for (let i = 0; i < this.#stops; i++) this.#post({ t: 'stop' });
      });
    } finally {
      thread.terminate();
    }
  }

  #post(message: ToEngine): void {
    if (this.#thread) this.#outbox.post(message);
  }

  #receive(batch: Batch<ToHandlers>): void {
    this.#inbox.push(...jobs(batch));
    this.#proceed();
  }

  /** Does what the engine says. When handlers have held the thread, what others before them came to is sent before it goes on. */
  #proceed(): void {
    const began = Date.now();
    for (let message; (message = this.#inbox.shift()); ) {
      this.#obey(message);
      if (Date.now() - began > LONGEST_TURN) {
        setImmediate(() => {
          this.#outbox.flush();
          this.#proceed();
        });
        return;
      }
    }
  }

  #obey(message: ToHandlers): void {
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
      case 'ask':
        this.#answer(message.id);
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

  /** Gives the engine the credentials of its next connection, or says why there are none. */
  async #answer(id: number): Promise<void> {
    try {
      this.#post({ t: 'credentials', id, credentials: await askFor(this.#config.credentials!) });
    } catch (error) {
      this.#post({ t: 'credentials', id, error: messageOf(error) });
    }
  }

  async #ended({ id, job, outcome, wait }: ToHandlers & { t: 'ended' }): Promise<void> {
    const failure = this.#failure(id, job, outcome.error);
    await this.#registry.ended(failure.job, outcome, failure.error);
    if (wait) this.#post({ t: 'hooked', name: `ended ${id}` });
  }

  #died({ id, job, error }: ToHandlers & { t: 'died' }): void {
    const failure = this.#failure(id, job, error);
    this.#failures.delete(id);
    this.#registry.call('death', failure.job, failure.error);
  }

  /** A job and why it failed, also if it never came to its handler. */
  #failure(id: number, data: JobData | undefined, error: Failure | undefined): { job: Job; error: unknown } {
    return this.#failures.get(id) ?? { job: new Job(data!, this.#stopping.signal), error: error && unthrown(error) };
  }

  async #run(id: number, data: JobData): Promise<void> {
    const job = new Job(data, this.#stopping.signal);
    this.#jobs.set(id, job);
    const { begin, end, verdict, shown } = await this.#registry.perform(job, data.timeout);
    this.#jobs.delete(id);
    if (!verdict) {
      this.#outbox.ended(id, begin, end);
      return;
    }
    this.#failures.set(id, { job, error: shown });
    const kept = 'backtrace' in verdict ? { ...verdict, backtrace: verdict.backtrace?.slice(0, data.backtrace) } : verdict;
    this.#post({ t: 'verdict', id, verdict: { ...kept, begin, end } });
  }
}
