import type { Job } from './job.js';

/** Its result is ignored. An error that it throws is the job's failure. */
export type Handler<A extends readonly unknown[] = any> = (job: Job<A>) => unknown;

export interface HandlerOptions<A extends readonly unknown[] = any> {
  /**
   * Returns the seconds until a failed job is retried. Undefined, 0 or less means the default
   * backoff. If it throws, that is logged, and the default backoff is used.
   */
  retryIn?: (count: number, error: any, job: Job<A>) => number | undefined | Promise<number | undefined>;
  /** How many seconds a job may run that has no timeout of its own. */
  timeout?: number;
}

/** Wraps all handlers. An error that it throws is the job's failure. */
export type WorkerMiddleware = (job: Job, next: () => Promise<unknown>) => unknown;
