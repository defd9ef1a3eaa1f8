import { Invalid } from './errors.js';
import type { DefinitionOptions, JobOptions, Jsonable, OutgoingJob } from './types.js';
import { OPTIONS } from './write.js';

declare const ARGS: unique symbol;

/**
 * A class of jobs with typed args and its own options: see defineJob. Clients and workers accept it
 * in place of the class's name.
 */
export class JobDefinition<A extends readonly unknown[] = any> {
  readonly class: string;
  readonly options: DefinitionOptions;
  declare readonly [ARGS]?: A;

  /** @internal */
  constructor(className: string, options: DefinitionOptions) {
    this.class = className;
    this.options = options;
    Object.freeze(this);
  }

  toString(): string {
    return this.class;
  }
}

/** A job to enqueue. */
export interface NewJob<A extends readonly unknown[] = readonly any[]> {
  class: string | JobDefinition<any>;
  args?: A;
  options?: JobOptions;
  /** When it is due; immediately if absent. */
  at?: Date;
}

/** A job of a bulk, if its args can be written as JSON. */
export type Checked<J extends NewJob> = J extends { class: JobDefinition<infer A> } ? J & { args?: A } : J extends NewJob ? J & { args?: Jsonable<J['args']> } : never;

/**
 * Defines a class of jobs once, for the code that enqueues and for its handler. The options apply
 * to jobs that do not set them.
 *
 *     const orderMail = defineJob<[mail: OrderMail]>('OrderMail', { queue: 'mail' });
 *     await client.enqueue(orderMail, [mail]);
 *     worker.handle(orderMail, async (job) => send(job.args[0]));
 */
export function defineJob<A extends readonly unknown[] = any[]>(
  className: [A] extends [Jsonable<A>] ? string : never, options: DefinitionOptions = {},
): JobDefinition<A> {
  if (typeof className !== 'string' || className === '') throw new Invalid('a definition needs the name of a class');
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name) || name === 'jid' || name === 'deadline') throw new Invalid(`a definition has no option ${name}`);
  }
  return new JobDefinition(className, Object.freeze({ ...options }));
}

/**
 * Returns a job as middleware gets it: with the name of its class, and the options of its
 * definition and its own.
 */
export function resolved({ class: job, args = [], options = {}, ...rest }: NewJob): OutgoingJob {
  if (!(job instanceof JobDefinition)) return { class: job, args: args as any[], options: { ...options }, ...rest };
  return { class: job.class, args: args as any[], options: { ...job.options, ...options }, ...rest };
}
