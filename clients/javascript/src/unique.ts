import { Refused } from './errors.js';
import { keyFault } from './format.js';
import type { Decision, OutgoingJob, Unique } from './types.js';

const PARTS = ['class', 'queue', 'args', 'jid'];
const MOST_PARTS = 16;
const MOST_SECONDS = 366 * 24 * 3600;

const isPath = (part: string): boolean => part.startsWith('args.') && part.split('.').every(Boolean) && Buffer.byteLength(part) <= 200;

const isPart = (part: unknown): boolean => typeof part === 'string' && (PARTS.includes(part) || isPath(part));

const isTime = (seconds: unknown): boolean => typeof seconds === 'number' && seconds > 0 && seconds <= MOST_SECONDS;

/** For each member, the fault of a value, or undefined. */
const FAULTS: { [member in keyof Unique]-?: (value: any) => string | undefined } = {
  key: (key) => (key === '' ? 'is empty' : keyFault('it', key)),
  by: (by) => (Array.isArray(by) && by.length > 0 && by.length <= MOST_PARTS && by.every(isPart) ? undefined
    : `must be an array of 1 to ${MOST_PARTS} of class, queue, args, jid and paths such as args.0.customer`),
  while: (value) => (['unfinished', 'waiting'].includes(value) ? undefined : 'must be unfinished or waiting'),
  on: (value) => (['keep', 'replace'].includes(value) ? undefined : 'must be keep or replace'),
  for: timeFault,
  wait: timeFault,
  max: timeFault,
};

function timeFault(seconds: unknown): string | undefined {
  return isTime(seconds) ? undefined : `must be a number of seconds above 0, at most ${MOST_SECONDS}`;
}

/** Returns the fault of the option `unique`, or undefined. */
export function uniqueFault(unique: unknown): string | undefined {
  if (unique === undefined || typeof unique === 'boolean') return undefined;
  if (typeof unique !== 'object' || unique === null) return 'unique is no boolean and no object';
  const members = Object.entries(unique).filter(([, value]) => value !== undefined);
  for (const [name, value] of members) {
    if (!Object.hasOwn(FAULTS, name)) return `unique has no option ${name}`;
    const fault = FAULTS[name as keyof Unique](value);
    if (fault) return `unique.${name}: ${fault}`;
  }
  const { key, by, wait, max } = unique as Unique;
  if (key !== undefined && by !== undefined) return 'unique has a key and parts: choose one';
  return max !== undefined && wait === undefined ? 'unique.max needs unique.wait' : undefined;
}

/** Returns the member `unique` of a job, or undefined if it is not unique. */
export function uniqueMember(unique: boolean | Unique | undefined): Unique | undefined {
  return unique === true ? {} : unique || undefined;
}

/** Makes a job unique by the defaults, if it is not unique. */
export function asUnique(job: OutgoingJob): OutgoingJob {
  return { ...job, options: { ...job.options, unique: job.options.unique || true } };
}

/** Returns the leader's decision about a job. Throws Refused if it has made none. */
export function decided(answer: { status?: number; jid?: string; duplicate_of?: string; reason?: string }, jid: string): Decision {
  if (answer.status === 201) return { jid: answer.jid ?? jid, duplicate: false };
  if (answer.status === 200) return { jid: answer.duplicate_of ?? answer.jid ?? jid, duplicate: true };
  throw new Refused(String(answer.reason));
}
