'use strict';

/** Names and limits of the wire format: docs/wire-format.md. */

const DIRECT = 'jobs.direct';
const CONTROL = 'jobs.control';
const LEADER = 'jobs.leader';
const SCHEDULED = 'scheduled_jobs';
const RETRIES = 'retries';
const DEAD = 'dead_jobs';
const HEARTBEATS = 'heartbeats';
const METRICS = 'job_metrics';
const BEGINS = 'jobs.begins';
const QUEUE_PREFIX = 'queue.';
const DEFAULT_QUEUE = 'default';

const MAX_PRIORITY = 10;
const MAX_RECORD = 16 * 1024 * 1024;
const MAX_DEPTH = 9_997;
const MAX_COUNT = 2_147_483_648;
const DEFAULT_RETRY = 25;

/** Members of a job that the format names: options write them, and all others are the user's. */
const MEMBERS = new Set([
  'jid', 'class', 'args', 'queue', 'retry', 'retry_count', 'priority', 'tags', 'expires_at', 'timeout', 'dead', 'backtrace', 'enqueued_at',
  'created_at', 'failed_at', 'error_class', 'error_message', 'millrace',
]);

/** A time of the format, in milliseconds: it is in seconds, or in milliseconds where seconds would be absurd. */
const millis = (at) => (Math.abs(at) > 1e11 ? at : at * 1000);

/** Now, as records say it: seconds with a fraction. */
const seconds = (ms = Date.now()) => ms / 1000;

/** What is wrong with a queue's name, or nothing. */
function queueNameFault(name) {
  if (typeof name !== 'string' || name === '') return 'queue name is empty';
  if (Buffer.byteLength(name) > 200) return 'queue name is longer than 200 bytes';
  if (!name.isWellFormed()) return 'queue name is not valid Unicode';
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f]/.test(name)) return 'queue name has a control character';
  return undefined;
}

/** A queue's name as clients say it, with or without the prefix. */
const queueName = (said) => (said.startsWith(QUEUE_PREFIX) ? said.slice(QUEUE_PREFIX.length) : said);

const TRACEPARENT = /^[\x20-\x7e]{1,255}$/;

/** A trace context that may be carried on, or nothing. */
const traceparent = (value) => (typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined);

/** Text that a property of a message can hold, or nothing. */
const shortText = (text) => (text.isWellFormed() && Buffer.byteLength(text) <= 255 ? text : undefined);

/** The properties of a message that holds a job or a record of one. */
function properties(jid, className, priority, trace, now = Date.now()) {
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

module.exports = {
  DIRECT, CONTROL, LEADER, SCHEDULED, RETRIES, DEAD, HEARTBEATS, METRICS,
  BEGINS, QUEUE_PREFIX, DEFAULT_QUEUE, MEMBERS, MAX_PRIORITY, MAX_RECORD, MAX_DEPTH, MAX_COUNT, DEFAULT_RETRY,
  millis, seconds, queueNameFault, queueName, traceparent, shortText, properties,
};
