import { createHash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { messageOf } from './errors.js';
import { DEFAULT_RETRY, MAX_COUNT, MAX_DEPTH, MAX_PRIORITY, millis } from './format.js';
import { members } from './scan.js';

/** A delivered job. Times are in ms, durations in seconds. An absent one is 0. */
export interface Delivered {
  text: string;
  queue: string;
  headers: Record<string, unknown>;
  jid: string;
  class: string;
  retry: number;
  retryCount: number;
  attempt: number;
  priority: number;
  tags: string[];
  dead: boolean;
  expiresAt: number;
  enqueuedAt: number;
  timeout: number;
  backtrace: number;
}

const DEFAULT_LINES = 20;
const MOST_LINES = 100;

/** A body that no worker can read. */
export class Undecodable extends Error {}

const isCount = (v: unknown): v is number => Number.isInteger(v) && (v as number) >= 0 && (v as number) <= MAX_COUNT;
const isTime = (v: unknown): v is number => typeof v === 'number' && Number.isFinite(v);
const isText = (v: unknown): v is string => typeof v === 'string' && v.isWellFormed();

/** The rules for the members of a job. A missing member breaks no rule. */
const rules: Record<string, (value: unknown) => boolean> = {
  class: (v) => isText(v) && v !== '',
  jid: isText,
  queue: isText,
  retry: (v) => typeof v === 'boolean' || isCount(v),
  retry_count: isCount,
  priority: (v) => isCount(v) && v <= MAX_PRIORITY,
  expires_at: isTime,
  dead: (v) => typeof v === 'boolean',
  tags: (v) => Array.isArray(v) && v.every((tag) => typeof tag === 'string'),
};
const ruled = Object.entries(rules);
const named = new Set([...Object.keys(rules), 'enqueued_at', 'created_at', 'failed_at', 'timeout', 'error_class', 'error_message']);

function retries(value: number | boolean | null | undefined): number {
  if (typeof value === 'number') return value;
  return value === false ? 0 : DEFAULT_RETRY;
}

/** Returns how many lines of a backtrace are kept. */
function lines(value: unknown): number {
  if (typeof value === 'boolean') return value ? MOST_LINES : 0;
  return typeof value === 'number' ? Math.min(Math.max(Math.floor(value), 0), MOST_LINES) : DEFAULT_LINES;
}

const positive = (value: unknown): number => (typeof value === 'number' && value > 0 && value < 1e9 ? value : 0);

/**
 * Refuses a job about which parsers differ: one that has a member twice, or spelled with escapes.
 */
function checkSpelling(text: string): void {
  const { found, depth } = members(text);
  if (depth > MAX_DEPTH) throw new Undecodable(`it is nested ${depth} levels deep`);
  const seen = new Set<string>();
  for (const { name } of found) {
    const plain = name.includes('\\') ? JSON.parse(`"${name}"`) : name;
    if (!named.has(plain)) continue;
    if (plain !== name) throw new Undecodable(`the name ${plain} is written with escapes`);
    if (seen.has(plain)) throw new Undecodable(`it has ${plain} twice`);
    seen.add(plain);
  }
}

/** The members of a job after the checks. */
interface Members {
  class: string;
  jid?: string | null;
  retry?: number | boolean | null;
  retry_count?: number | null;
  priority?: number | null;
  expires_at?: number | null;
  dead?: boolean | null;
  tags?: string[] | null;
  enqueued_at?: unknown;
  timeout?: unknown;
  backtrace?: unknown;
}

function read(text: string): Members {
  let value: any;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Undecodable(`no JSON: ${messageOf(error)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Undecodable('no JSON object');
  for (const [name, holds] of ruled) {
    if (Object.hasOwn(value, name) && value[name] !== null && !holds(value[name])) throw new Undecodable(`${name} is wrong`);
  }
  if (!Object.hasOwn(value, 'class') || value.class === null) throw new Undecodable('it has no class');
  checkSpelling(text);
  return value;
}

/**
 * Returns the id of a job without a jid: that of its message, or a hash of its bytes, which is the
 * same at each delivery.
 */
const nameless = (body: Buffer, messageId: string): string => messageId || createHash('sha256').update(body).digest('hex').slice(0, 24);

/** The properties of a message that a worker reads. */
interface Properties {
  messageId?: string;
  timestamp?: number;
  headers?: Record<string, unknown>;
}

/** Reads a delivery. Throws Undecodable if it is not a job. */
export function parseJob(body: Buffer, queue: string, { messageId = '', timestamp = 0, headers = {} }: Properties = {}): Delivered {
  if (!isUtf8(body)) throw new Undecodable('it is not UTF-8');
  const text = body.toString('utf8');
  const value = read(text);
  const count = value.retry_count ?? 0;
  const enqueued = isTime(value.enqueued_at) ? millis(value.enqueued_at) : (timestamp || 0) * 1000;
  return {
    text, queue, headers,
    jid: value.jid || nameless(body, messageId),
    class: value.class,
    retry: retries(value.retry),
    retryCount: count,
    attempt: count + 1,
    priority: value.priority ?? 0,
    tags: value.tags ?? [],
    dead: value.dead ?? true,
    expiresAt: value.expires_at == null ? 0 : millis(value.expires_at),
    enqueuedAt: enqueued,
    timeout: positive(value.timeout),
    backtrace: lines(value.backtrace),
  };
}
