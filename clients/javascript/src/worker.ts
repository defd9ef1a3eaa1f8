import { Worker as Thread } from 'node:worker_threads';
import type { JobDefinition } from './define.js';
import { Cancelled, Stopping, messageOf } from './errors.js';
import type { Handler, HandlerOptions, WorkerMiddleware } from './handler.js';
import { askFor } from './hosts.js';
import { Job } from './job.js';
import { loggerOf } from './log.js';
import type { ThreadData } from './millrace-thread.js';
import type { Failure } from './outcome.js';
import { Outbox, jobs, type Batch, type JobData, type ToEngine, type ToHandlers } from './outbox.js';
import { Registry, type Hook } from './registry.js';
import { settings, type Settings } from './settings.js';
import { threadFile } from './thread-file.js';
import type { Logger, WorkerOptions } from './types.js';
import { VERSION } from './version.js';

const LONGEST_TURN = 5; // ms for which jobs begin before the ends of others are sent

/** Returns an error that no handler threw, as a record describes it. */
function unthrown({ errorClass, message }: Failure): Error {
  return Object.assign(new Error(message), { name: errorClass, stack: `${errorClass}: ${message}` });
}

/** Returns the registry of a worker. */
export let registryOf: (worker: Worker) => Registry;

/**
 * Runs jobs. Handlers run in the thread that calls run(). Everything else runs in another thread,
 * above all the connection to the broker. So a handler that blocks its thread does not cost the
 * connection.
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
  // Jobs that failed, with the errors, until their outcomes are settled.
  #failures = new Map<number, { job: Job; error: unknown }>();
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

  /**
   * Registers the handler of a class, or of a definition. Throws if the class has one already, or
   * if the worker runs.
   */
  handle<A extends readonly unknown[]>(job: JobDefinition<A>, handler: Handler<A>, options?: HandlerOptions<A>): this;
  handle(className: string, handler: Handler, options?: HandlerOptions): this;
  handle(job: string | JobDefinition, handler: Handler, options?: HandlerOptions): this {
    this.#registry.handle(job, handler, options);
    return this;
  }

  /**
   * Adds middleware around all handlers: async (job, next) => next(). Call it before run(). The
   * first is the outermost.
   */
  use(middleware: WorkerMiddleware): this {
    this.#registry.use(middleware);
    return this;
  }

  /**
   * Calls a function when the worker consumes for the first time, becomes quiet, or has settled all
   * jobs.
   */
  on(hook: 'startup' | 'quiet' | 'shutdown', call: () => unknown): this;
  /**
   * failure: calls a function after each failed attempt. The retry or death is published after
   * that, or after 5 s. death: calls a function when a job was given up. A hook that throws is
   * logged, and changes nothing.
   */
  on(hook: 'failure' | 'death', call: (job: Job, error: any) => unknown): this;
  on(hook: Hook, call: (...args: any[]) => unknown): this {
    this.#registry.on(hook, call);
    return this;
  }

  /** Takes no more jobs. Running jobs continue. */
  quiet(): void {
    this.#quiet = true;
    this.#post({ t: 'quiet' });
  }

  /**
   * Ends run() once all jobs have ended, or were handed back when stopTimeout is over. A second
   * call ends the wait.
   */
  stop(): void {
    this.#stops++;
    this.#stopping.abort(new Stopping());
    this.#post({ t: 'stop' });
  }

  /**
   * Runs jobs until the worker has stopped. With signals, SIGTSTP makes it quiet, and SIGTERM and
   * SIGINT stop it. Throws if the broker refuses the worker at its first attempt. Everything else
   * is tried again.
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
      // The thread inherits Node's own flags, which must not be given again. The flag of `node -e`
      // is not allowed with a file.
      ...(process.execArgv.some((arg) => arg.startsWith('--input-type')) && { execArgv: [] }),
    });
    this.#thread = thread;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#end = (error) => (error ? reject(new Error(`millrace: ${error}`)) : resolve());
        thread.on('message', (batch: Batch<ToHandlers>) => this.#receive(batch));
        thread.on('error', reject);
        thread.on('exit', () => {
          // Perhaps the engine's last messages.
          for (const message of this.#inbox.splice(0)) this.#obey(message);
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

  /**
   * Handles messages of the engine. If handlers have blocked the thread, it first sends the ends of
   * other jobs.
   */
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

  /** Sends the engine the credentials of its next connection, or the reason why there are none. */
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

  /** Returns a failed job and its error, also if the job never came to its handler. */
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
