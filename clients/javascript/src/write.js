'use strict';

const { randomBytes } = require('node:crypto');
const types = require('node:util/types');
const { Invalid, isError } = require('./errors.js');
const { DEFAULT_QUEUE, DIRECT, MAX_COUNT, MAX_PRIORITY, MAX_RECORD, MEMBERS, SCHEDULED, properties, queueNameFault, seconds } = require('./format.js');

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

/**
 * What JSON.stringify would make `{}`, or a list of bytes, with what to write instead.
 *
 * @type {[(value: any) => boolean, string][]}
 */
const LOST = [
  [isError, 'no Error: pass error.message, or an object of what you need of it'],
  [(v) => types.isMap(v) || types.isWeakMap(v), 'no Map: pass Object.fromEntries(map)'],
  [(v) => types.isSet(v) || types.isWeakSet(v), 'no Set: pass [...set]'],
  [types.isPromise, 'no Promise: await it'],
  [types.isRegExp, 'no RegExp: pass its source'],
  [(v) => types.isAnyArrayBuffer(v) || ArrayBuffer.isView(v), 'no binary data: pass text, for instance base64'],
];

function encodeObject(value) {
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    const [, instead] = LOST.find(([is]) => is(value)) ?? [];
    check(instead === undefined, `JSON has ${instead}`);
    if (types.isBoxedPrimitive(value)) return encode(value.valueOf());
  }
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
      return encodeObject(value);
    default:
      throw new Invalid(value === undefined ? 'JSON has no undefined: write null' : `JSON has no ${typeof value}`);
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
  check(types.isDate(at) && !Number.isNaN(at.getTime()), `${name} is no Date`);
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
  for (const name of Object.keys(o.fields ?? {})) check(!MEMBERS.has(name), `field ${name} is named by the format`);
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

module.exports = { OPTIONS, newJid, toJSON, prepare };
