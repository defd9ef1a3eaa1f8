import type { Options } from 'amqplib';

/** Names and limits of the wire format: docs/wire-format.md. */

export const DIRECT = 'jobs.direct';
export const CONTROL = 'jobs.control';
export const LEADER = 'jobs.leader';
export const SCHEDULED = 'scheduled_jobs';
export const RETRIES = 'retries';
export const DEAD = 'dead_jobs';
export const HEARTBEATS = 'heartbeats';
export const METRICS = 'job_metrics';
export const BEGINS = 'jobs.begins';
export const GATED = 'jobs.gated';
export const DIRECT_REPLY = 'amq.rabbitmq.reply-to';
export const ENDS = 'jobs.ends';
export const QUEUE_PREFIX = 'queue.';
export const DEFAULT_QUEUE = 'default';

export const MAX_PRIORITY = 10;
export const MAX_RECORD = 16 * 1024 * 1024;
export const MAX_DEPTH = 9_997;
export const MAX_COUNT = 2_147_483_648;
export const DEFAULT_RETRY = 25;

/** The members of a job that the format names. Options write them. All others are the user's. */
export const MEMBERS = new Set([
  'jid', 'class', 'args', 'queue', 'retry', 'retry_count', 'priority', 'tags', 'expires_at', 'timeout', 'dead', 'backtrace', 'enqueued_at',
  'created_at', 'failed_at', 'error_class', 'error_message', 'millrace', 'gate',
]);

/**
 * Converts a time of the format to milliseconds. A number too large for seconds is already in
 * milliseconds.
 */
export const millis = (at: number): number => (Math.abs(at) > 1e11 ? at : at * 1000);

/** The present time as records have it: seconds with a fraction. */
export const seconds = (ms = Date.now()): number => ms / 1000;

/** Returns the fault of a queue's name, or undefined. */
export function queueNameFault(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return 'queue name is empty';
  return textFault('queue name', name);
}

/** Returns the fault of the key of a limited or unique job, or undefined. */
export function keyFault(name: string, key: unknown): string | undefined {
  return typeof key === 'string' ? textFault(name, key) : `${name} is no text`;
}

function textFault(name: string, text: string): string | undefined {
  if (Buffer.byteLength(text) > 200) return `${name} is longer than 200 bytes`;
  if (!text.isWellFormed()) return `${name} is not valid Unicode`;
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) return `${name} has a control character`;
  return undefined;
}

/** Returns a queue's name without the prefix. */
export const queueName = (said: string): string => (said.startsWith(QUEUE_PREFIX) ? said.slice(QUEUE_PREFIX.length) : said);

const TRACEPARENT = /^[\x20-\x7e]{1,255}$/;

/** Returns a trace context that may be passed on, or undefined. */
export const traceparent = (value: unknown): string | undefined => (typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined);

/** Returns a text that a property of a message can hold, or undefined. */
export const shortText = (text: string): string | undefined => (text.isWellFormed() && Buffer.byteLength(text) <= 255 ? text : undefined);

/** Returns the properties of a message that holds a job or a record of one. */
export function properties(jid: string, className: string, priority: number, trace?: unknown, now = Date.now()): Options.Publish {
  const carried = traceparent(trace);
  return {
    contentType: 'application/json',
    deliveryMode: 2,
    messageId: shortText(jid),
    type: className === 'amqp-1.0' ? undefined : shortText(className),
    timestamp: Math.floor(now / 1000),
    priority,
    headers: carried ? { traceparent: carried } : {},
    mandatory: true,
  };
}

/** Parses a message as JSON. An invalid one has no members. */
export function parse(body: Buffer): any {
  try {
    return JSON.parse(body.toString()) ?? {};
  } catch {
    return {};
  }
}
