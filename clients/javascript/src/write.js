'use strict';

const { randomBytes } = require('node:crypto');
const { Invalid } = require('./errors.js');
const { DEFAULT_QUEUE, DIRECT, MAX_COUNT, MAX_PRIORITY, MAX_RECORD, SCHEDULED, properties, queueNameFault, seconds } = require('./format.js');

/** Members that the format names: options write them, or they are not the user's. */
const RESERVED = new Set([
  'jid', 'class', 'args', 'queue', 'retry', 'retry_count', 'priority', 'tags', 'expires_at', 'timeout', 'dead', 'backtrace', 'enqueued_at',
  'created_at', 'failed_at', 'error_class', 'error_message', 'millrace',
]);
const OPTIONS = new Set([
  'queue', 'retry', 'priority', 'tags', 'jid', 'expiresAt', 'timeout', 'dead', 'backtrace', 'fields', 'traceparent', 'deadline',
]);

const newJid = () => randomBytes(16).toString('hex');

function check(ok, what) {
  if (!ok) throw new Invalid(what);
}

function encodeText(text) {
  check(text.isWellFormed(), `the text ${JSON.stringify(text.slice(0, 40))} is not valid Unicode`);
  return JSON.stringify(text);
}

function encodeObject(value) {
  const parts = [];
  for (const name of Object.keys(value)) {
    if (value[name] !== undefined) parts.push(`${encodeText(name)}:${encode(value[name])}`);
  }
  return `{${parts.join(',')}}`;
}

/** JSON as JSON.stringify writes it, but that nothing is changed silently: what JSON cannot say is refused, a BigInt is a number. */
function encode(value) {
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
      if (typeof value.toJSON === 'function') return encode(value.toJSON());
      check(!(value instanceof Map || value instanceof Set), 'JSON has no Map and no Set');
      return encodeObject(value);
    default:
      throw new Invalid(`JSON has no ${typeof value}`);
  }
}

/** The JSON of a value, or Invalid. */
function toJSON(value) {
  try {
    return encode(value);
  } catch (error) {
    if (error instanceof RangeError) throw new Invalid('it is nested too deep, or holds itself');
    throw error;
  }
}

function time(name, at) {
  check(at instanceof Date && !Number.isNaN(at.getTime()), `${name} is no Date`);
  return seconds(at.getTime());
}

const isCount = (n) => Number.isInteger(n) && n >= 0 && n <= MAX_COUNT;

function checkOptions(o) {
  for (const name of Object.keys(o)) check(OPTIONS.has(name), `there is no option ${name}`);
  check(o.retry === undefined || typeof o.retry === 'boolean' || isCount(o.retry), `retry is ${o.retry}`);
  check(o.priority === undefined || (isCount(o.priority) && o.priority <= MAX_PRIORITY), `priority is ${o.priority}, 0 to 10 are allowed`);
  check(o.tags === undefined || (Array.isArray(o.tags) && o.tags.every((t) => typeof t === 'string')), 'tags are no array of strings');
  check(o.jid === undefined || (typeof o.jid === 'string' && o.jid !== '' && o.jid.isWellFormed()), 'jid is no valid text');
  check(o.timeout === undefined || (Number.isFinite(o.timeout) && o.timeout >= 0), `timeout is ${o.timeout}`);
  check(o.dead === undefined || typeof o.dead === 'boolean', 'dead is no boolean');
  check(o.backtrace === undefined || typeof o.backtrace === 'boolean' || isCount(o.backtrace), `backtrace is ${o.backtrace}`);
  for (const name of Object.keys(o.fields ?? {})) check(!RESERVED.has(name), `field ${name} is named by the format`);
}

/** The members of a job that its options say; what was not given is left out. */
function optional(o) {
  const m = {};
  for (const name of ['retry', 'priority', 'tags', 'timeout', 'dead', 'backtrace']) if (o[name] !== undefined) m[name] = o[name];
  if (o.expiresAt !== undefined) m.expires_at = time('expiresAt', o.expiresAt);
  return { ...m, ...o.fields };
}

/** Checks a job, {class, args, options, at}, and writes it down: what is published where. */
function prepare(job, now = Date.now()) {
  const options = job.options ?? {};
  check(typeof job.class === 'string' && job.class !== '', 'it has no class');
  check(Array.isArray(job.args ?? []), 'args are no array');
  checkOptions(options);
  const queue = options.queue ?? DEFAULT_QUEUE;
  const fault = queueNameFault(queue);
  check(!fault, fault);
  const jid = options.jid ?? newJid();
  const stamp = job.at === undefined ? 'enqueued_at' : 'created_at';
  const text = toJSON({
    jid, class: job.class, args: job.args ?? [], queue, retry_count: 0, [stamp]: seconds(now), ...optional(options),
  });
  return { jid, ...place(job, jid, queue, text), properties: properties(jid, job.class, options.priority ?? 0, options.traceparent, now) };
}

function place(job, jid, queue, text) {
  if (job.at !== undefined) {
    const head = toJSON({ type: 'scheduled_job', jid, scheduled_at: time('at', job.at) });
    text = `${head.slice(0, -1)},"job":${text}}`;
  }
  const body = Buffer.from(text);
  check(body.length <= MAX_RECORD, `it has ${body.length} bytes, at most ${MAX_RECORD} are allowed`);
  return job.at === undefined ? { exchange: DIRECT, key: queue, body } : { exchange: '', key: SCHEDULED, body };
}

module.exports = { newJid, toJSON, prepare };
