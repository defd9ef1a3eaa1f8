import { randomBytes } from 'node:crypto';
import {
  isAnyArrayBuffer, isBoxedPrimitive, isDate, isMap, isPromise, isRegExp, isSet, isWeakMap, isWeakSet,
} from 'node:util/types';
import { Invalid, isError } from './errors.js';
import { DEFAULT_QUEUE, DIRECT, GATED, MAX_COUNT, MAX_PRIORITY, MAX_RECORD, MEMBERS, SCHEDULED, keyFault, properties, queueNameFault, seconds } from './format.js';
import type { Publication } from './publisher.js';
import type { JobOptions, PublishOptions, Unique } from './types.js';
import { uniqueFault, uniqueMember } from './unique.js';

export const OPTIONS = new Set<string>([
  'queue', 'retry', 'priority', 'tags', 'jid', 'expiresAt', 'timeout', 'dead', 'backtrace', 'fields', 'traceparent', 'deadline', 'limited', 'limitKey', 'unique',
]);

export const newJid = (): string => randomBytes(16).toString('hex');

export function check(ok: unknown, what: string | undefined): asserts ok {
  if (!ok) throw new Invalid(what);
}

function encodeText(text: string): string {
  check(text.isWellFormed(), `the text ${JSON.stringify(text.slice(0, 40))} is not valid Unicode`);
  return JSON.stringify(text);
}

/**
 * Values that JSON.stringify would change to `{}` or a list of bytes, with the form to write
 * instead.
 */
const LOST: [(value: unknown) => boolean, string][] = [
  [isError, 'no Error: pass error.message, or an object of what you need of it'],
  [(v) => isMap(v) || isWeakMap(v), 'no Map: pass Object.fromEntries(map)'],
  [(v) => isSet(v) || isWeakSet(v), 'no Set: pass [...set]'],
  [isPromise, 'no Promise: await it'],
  [isRegExp, 'no RegExp: pass its source'],
  [(v) => isAnyArrayBuffer(v) || ArrayBuffer.isView(v), 'no binary data: pass text, for instance base64'],
  [(v) => typeof (v as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function', 'no iterator: pass [...iterator]'],
];

function encodeObject(value: object): string {
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    if (isBoxedPrimitive(value)) return encode(value.valueOf()); // first: a boxed string is iterable
    const [, instead] = LOST.find(([is]) => is(value)) ?? [];
    check(instead === undefined, `JSON has ${instead}`);
  }
  const parts = [];
  const record = value as Record<string, unknown>;
  for (const name of Object.keys(record)) {
    if (record[name] !== undefined) parts.push(`${encodeText(name)}:${encode(record[name])}`);
  }
  return `{${parts.join(',')}}`;
}

/** Returns whether a value is a Date without a time. JSON.stringify would write null. */
const isInvalidDate = (value: unknown): boolean => isDate(value) && Number.isNaN(value.getTime());

/**
 * Writes JSON as JSON.stringify does, but changes nothing silently: it refuses values that JSON
 * does not have, and writes a BigInt as a number.
 */
function encode(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return encodeText(value);
    case 'number':
      check(Number.isFinite(value), `the number ${value} is not finite`);
      return JSON.stringify(value);
    case 'bigint':
      return value.toString();
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      if (Array.isArray(value)) return `[${Array.from(value, encode).join(',')}]`;
      check(!isInvalidDate(value), 'JSON has no invalid Date: write null');
      if ('toJSON' in value && typeof value.toJSON === 'function') return encode(value.toJSON());
      return encodeObject(value);
    default:
      throw new Invalid(value === undefined ? 'JSON has no undefined: write null' : `JSON has no ${typeof value}`);
  }
}

/** Calls a function that visits a value. Throws Invalid if the value is nested too deep. */
export function shallow<T>(visit: () => T): T {
  try {
    return visit();
  } catch (error) {
    if (error instanceof RangeError) throw new Invalid('it is nested too deep, or holds itself');
    throw error;
  }
}

/** Returns the JSON of a value. Throws Invalid if it has none. */
export const toJSON = (value: unknown): string => shallow(() => encode(value));

function time(name: string, at: unknown): number {
  check(isDate(at) && !Number.isNaN(at.getTime()), `${name} is no Date`);
  return seconds(at.getTime());
}

export const isCount = (n: unknown): n is number => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= MAX_COUNT;

function checkOptions(o: PublishOptions): void {
  for (const name of Object.keys(o)) check(OPTIONS.has(name), `there is no option ${name}`);
  check(o.retry === undefined || typeof o.retry === 'boolean' || isCount(o.retry), `retry is ${o.retry}`);
  check(o.priority === undefined || (isCount(o.priority) && o.priority <= MAX_PRIORITY), `priority is ${o.priority}, 0 to 10 are allowed`);
  check(o.tags === undefined || (Array.isArray(o.tags) && o.tags.every((t) => typeof t === 'string')), 'tags are no array of strings');
  check(o.jid === undefined || (typeof o.jid === 'string' && o.jid !== '' && o.jid.isWellFormed()), 'jid is no valid text');
  check(o.timeout === undefined || (Number.isFinite(o.timeout) && o.timeout >= 0), `timeout is ${o.timeout}`);
  check(o.dead === undefined || typeof o.dead === 'boolean', 'dead is no boolean');
  check(o.limited === undefined || typeof o.limited === 'boolean', 'limited is no boolean');
  const fault = (o.limitKey === undefined ? undefined : keyFault('limitKey', o.limitKey)) ?? uniqueFault(o.unique);
  check(!fault, fault);
  check(o.backtrace === undefined || typeof o.backtrace === 'boolean' || isCount(o.backtrace), `backtrace is ${o.backtrace}`);
  for (const name of Object.keys(o.fields ?? {})) check(!MEMBERS.has(name), `field ${name} is named by the format`);
}

/** The member of limited and unique jobs. A unique job waits in jobs.gated until it is due. */
interface Gate {
  key?: string;
  unique?: Unique;
  at?: number;
}

function gateOf(o: JobOptions, at?: unknown): Gate | undefined {
  const unique = uniqueMember(o.unique);
  if (!unique && !o.limited && !o.limitKey) return undefined;
  return { ...(o.limitKey && { key: o.limitKey }), ...(unique && { unique }), ...(unique && at !== undefined && { at: time('at', at) }) };
}

/** Returns the members of a job that its options set. Absent options are left out. */
function optional(o: PublishOptions, at?: unknown): Record<string, unknown> {
  const m: Record<string, unknown> = {};
  for (const name of ['retry', 'priority', 'tags', 'timeout', 'dead', 'backtrace'] as const) if (o[name] !== undefined) m[name] = o[name];
  if (o.expiresAt !== undefined) m.expires_at = time('expiresAt', o.expiresAt);
  m.gate = gateOf(o, at);
  return { ...m, ...o.fields };
}

/** A job to publish, with the name of its class. */
export interface NamedJob {
  class: string;
  args?: readonly unknown[];
  options?: JobOptions;
  at?: unknown;
}

/** An encoded job, and where to publish it. */
export type Prepared = Publication & { jid: string };

/** Checks a job, and returns the queue that it is for. */
function checkedQueue(job: NamedJob): string {
  check(typeof job.class === 'string' && job.class !== '', 'it has no class');
  check(Array.isArray(job.args ?? []), 'args are no array');
  checkOptions(job.options ?? {});
  const queue = job.options?.queue ?? DEFAULT_QUEUE;
  const fault = queueNameFault(queue);
  check(!fault, fault);
  return queue;
}

/** Checks a job, and returns its members without those that each job has of its own. */
export function template(job: NamedJob): Record<string, unknown> {
  const queue = checkedQueue(job);
  const members = { class: job.class, args: job.args ?? [], queue, ...optional(job.options ?? {}) };
  toJSON(members); // what JSON does not have is refused here
  return members;
}

/** Checks a job, {class, args, options, at}, and encodes it. */
export function prepare(job: NamedJob, now = Date.now()): Prepared {
  const options: PublishOptions = job.options ?? {};
  const queue = checkedQueue(job);
  const jid = options.jid ?? newJid();
  const stamp = job.at === undefined ? 'enqueued_at' : 'created_at';
  const text = toJSON({
    jid, class: job.class, args: job.args ?? [], queue, retry_count: 0, [stamp]: seconds(now), ...optional(options, job.at),
  });
  return { jid, ...place(job, jid, queue, text), properties: properties(jid, job.class, options.priority ?? 0, options.traceparent, now) };
}

function place(job: NamedJob, jid: string, queue: string, text: string): Omit<Publication, 'properties'> {
  const unique = Boolean(job.options?.unique);
  if (job.at !== undefined && !unique) {
    const head = toJSON({ type: 'scheduled_job', jid, scheduled_at: time('at', job.at) });
    text = `${head.slice(0, -1)},"job":${text}}`;
  }
  const body = Buffer.from(text);
  check(body.length <= MAX_RECORD, `it has ${body.length} bytes, at most ${MAX_RECORD} are allowed`);
  if (job.at !== undefined && !unique) return { exchange: '', key: SCHEDULED, body };
  return gateOf(job.options ?? {}) ? { exchange: '', key: GATED, body } : { exchange: DIRECT, key: queue, body };
}
