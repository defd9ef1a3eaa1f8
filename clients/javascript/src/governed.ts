import { queueNameFault } from './format.js';
import { check } from './write.js';

/** A queue of which limits count all jobs, also plain jobs of other programs. */
export interface GovernedQueue {
  /** The queue, without `queue.`. */
  name: string;
  /** The path to the key of a job, such as args.0.customer_id or class. Keys take turns. */
  key?: string;
  /** While so many jobs wait, more are refused (`Refused`). Default: any number waits. */
  maxWaiting?: number;
  /** By key, how many turns it has in a round. Default 1. */
  weights?: { readonly [key: string]: number };
  /**
   * How many jobs of the queue are delivered and have not ended at most. Default: twice as many as
   * its workers run at once.
   */
  ahead?: number;
  /** Whether no job of the queue is delivered. */
  paused?: boolean;
}

const MOST = { maxWaiting: 1_000_000_000, ahead: 1_000_000, weight: 1000 };
const MOST_WEIGHTS = 10_000;
const MOST_KEY = 200; // bytes
const MEMBERS: Record<string, string> = { key: 'key', maxWaiting: 'max_waiting', weights: 'weights', ahead: 'ahead', paused: 'paused' };

const isPath = (key: unknown): boolean => typeof key === 'string' && key.split('.').every(Boolean) && Buffer.byteLength(key) <= MOST_KEY;

/** Returns the fault of a number, or undefined. */
function numberFault(what: string, value: unknown, most: number): string | undefined {
  return value === undefined || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most) ? undefined : `${what} must be a whole number from 1 to ${most}`;
}

/** Returns the fault of a governed queue, or undefined. */
function fault({ name, key, maxWaiting, weights = {}, ahead }: GovernedQueue): string | undefined {
  if (key !== undefined && !isPath(key)) return `key must be a path into the job, such as args.0.customer_id, of at most ${MOST_KEY} bytes`;
  const all = Object.entries(weights);
  if (all.length > MOST_WEIGHTS) return `there are ${all.length} weights, at most ${MOST_WEIGHTS} are allowed`;
  return queueNameFault(name) ?? numberFault('maxWaiting', maxWaiting, MOST.maxWaiting) ?? numberFault('ahead', ahead, MOST.ahead)
    ?? all.map(([of, weight]) => numberFault(`the weight of key ${JSON.stringify(of.slice(0, 40))}`, weight ?? 0, MOST.weight)).find(Boolean);
}

/** Checks a governed queue, and returns its definition. */
export function queueDefinition(queue: GovernedQueue): Record<string, unknown> {
  const wrong = fault(queue);
  check(!wrong, `governed queue ${JSON.stringify(queue.name)}: ${wrong}`);
  const { name, ...rest } = queue;
  const members: Record<string, unknown> = { name };
  for (const [option, value] of Object.entries(rest)) {
    const member = MEMBERS[option];
    check(member, `governed queue ${name}: there is no option ${option}`);
    if (value !== undefined) members[member] = value;
  }
  return members;
}
