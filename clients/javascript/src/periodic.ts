import { resolved, type JobDefinition } from './define.js';
import { Invalid, Refused } from './errors.js';
import { queueDefinition, type GovernedQueue } from './governed.js';
import type { Command } from './leader.js';
import { limitDefinition, type Limit } from './limits.js';
import type { JobOptions } from './types.js';
import { check, newJid, template } from './write.js';

/** A job that the leader enqueues again and again. Either `cron` or `every` says when it is due. */
export interface PeriodicJob<A extends readonly unknown[] = readonly any[]> {
  /** 1 to 64 letters, digits, dots, hyphens and underscores. */
  name: string;
  class: string | JobDefinition<any>;
  args?: A;
  /** Those of the job. */
  options?: Omit<JobOptions, 'jid' | 'expiresAt' | 'traceparent' | 'unique'>;
  /** Five fields, such as "0 3 * * *", or @hourly, @daily, @weekly, @monthly or @yearly. */
  cron?: string;
  /** Seconds, a whole number. */
  every?: number;
  /** The time zone of `cron` and `except`, such as Europe/Stockholm. Default UTC. */
  tz?: string;
  /** Each job is due up to so many seconds after its tick. */
  jitter?: number;
  /** The job expires so many seconds after it is due. */
  expiresIn?: number;
  /** A tick that is later than so many seconds is late. Default 60. */
  grace?: number;
  /** What becomes of late ticks. Default "skip". */
  catchUp?: 'skip' | 'last' | 'all';
  /** Of catchUp "all". Default 100. */
  catchUpMax?: number;
  /** What becomes of a tick while the job of the last one waits. Default "allow". */
  overlap?: 'allow' | 'skip';
  /** Dates without ticks: 2026-12-24, or 2026-12-24..2026-12-26. */
  except?: readonly string[];
  paused?: boolean;
}

/** What `define` did, by the names of periodic jobs, limits and governed queues. */
export interface Defined {
  made: string[];
  changed: string[];
  /** The source had defined them and does not any more. */
  forgotten: string[];
  unchanged: number;
}

/** The members of a definition. */
const MEMBERS: Record<string, string> = {
  cron: 'cron', every: 'every', tz: 'tz', jitter: 'jitter', expiresIn: 'expires_in', grace: 'grace', catchUp: 'catch_up', catchUpMax: 'catch_up_max', overlap: 'overlap',
  except: 'except', paused: 'paused',
};

/** Checks a periodic job, and returns its definition. */
export function definition({ name, class: job, args = [], options = {}, ...schedule }: PeriodicJob): Record<string, unknown> {
  for (const ours of ['jid', 'expiresAt', 'traceparent', 'deadline']) check(!(ours in options), `periodic job ${name}: there is no option ${ours}`);
  const whole = resolved({ class: job, args, options });
  check(!whole.options.unique, `periodic job ${name} cannot be unique: set overlap`);
  const members: Record<string, unknown> = { name, job: template(whole) };
  for (const [key, value] of Object.entries(schedule)) {
    const member = MEMBERS[key];
    check(member, `periodic job ${name}: there is no option ${key}`);
    if (value !== undefined) members[member] = value;
  }
  return members;
}

/** What else `define` takes. */
export interface DefineOptions {
  limits?: readonly Limit[] | undefined;
  queues?: readonly GovernedQueue[] | undefined;
  /** Seconds until `define` gives up. */
  deadline?: number;
}

/** What a source defines. A list that is left out leaves what there is of its kind as it is. */
export interface Definitions extends Pick<DefineOptions, 'limits' | 'queues'> {
  jobs?: readonly PeriodicJob[] | undefined;
}

/** Returns the command that defines all periodic jobs, limits and governed queues of a source. */
export function defining(source: string, { jobs, limits, queues }: Definitions): Command {
  check(jobs || limits || queues, 'there is nothing to define: give jobs, limits or queues');
  const lists = { periodic_jobs: jobs?.map(definition), limits: limits?.map(limitDefinition), queues: queues?.map(queueDefinition) };
  return { id: newJid(), command: 'define', definitions: { source, ...lists } };
}

/** Returns what the leader did. Throws Invalid or Refused if it did nothing. */
export function defined({ status, reason, defined: did }: { status?: number; reason?: string; defined?: Defined }): Defined {
  // 204: it was done before, and that answer was lost.
  if (status === 200 || status === 204) return { made: [], changed: [], forgotten: [], unchanged: 0, ...did };
  throw new (status === 400 ? Invalid : Refused)(String(reason));
}
