import { check } from './write.js';

/** How many jobs may begin in a time. They begin evenly spread over it. */
export interface Rate {
  jobs: number;
  seconds: number;
  /** How many may begin at once after a pause. Default 1. */
  burst?: number;
}

/** How many jobs run at once, and how many begin in a time. */
export interface Bound {
  concurrency?: number;
  rate?: Rate;
}

/** A limit for the limited jobs of its queues and classes. It has `concurrency`, `rate` or both. */
export interface Limit extends Bound {
  /** 1 to 64 letters, digits, dots, hyphens and underscores. */
  name: string;
  /** Default: all. */
  queues?: readonly string[];
  /** Default: all. */
  classes?: readonly string[];
  /** What has a limit of its own: each queue, class or key, or each combination of these. */
  per?: readonly ('queue' | 'class' | 'key')[];
  /** By key, of a limit that is per key. What an override leaves out is as for other keys. */
  overrides?: { readonly [key: string]: Bound };
  paused?: boolean;
}

const MEMBERS = new Set(['name', 'queues', 'classes', 'per', 'concurrency', 'rate', 'overrides', 'paused']);

/**
 * Checks the names of a limit's members, and returns its definition. The leader checks the rest.
 */
export function limitDefinition(limit: Limit): Record<string, unknown> {
  for (const name of Object.keys(limit)) check(MEMBERS.has(name), `limit ${limit.name}: there is no option ${name}`);
  return { ...limit };
}
