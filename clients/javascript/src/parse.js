'use strict';

const { createHash } = require('node:crypto');
const { isUtf8 } = require('node:buffer');
const { DEFAULT_RETRY, MAX_COUNT, MAX_DEPTH, MAX_PRIORITY, millis } = require('./format.js');
const { members } = require('./scan.js');

const DEFAULT_LINES = 20;
const MOST_LINES = 100;

/** A body that no worker can read. */
class Undecodable extends Error {}

const isCount = (v) => Number.isInteger(v) && v >= 0 && v <= MAX_COUNT;
const isTime = (v) => typeof v === 'number' && Number.isFinite(v);
const isText = (v) => typeof v === 'string' && v.isWellFormed();

/** What the members of a job have to be, where they are there. */
const rules = {
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
const ruled = Object.keys(rules);
const named = new Set([...ruled, 'enqueued_at', 'created_at', 'failed_at', 'timeout', 'error_class', 'error_message']);

function retries(value) {
  if (typeof value === 'number') return value;
  return value === false ? 0 : DEFAULT_RETRY;
}

/** How many lines of a backtrace are kept. */
function lines(value) {
  if (typeof value === 'boolean') return value ? MOST_LINES : 0;
  return typeof value === 'number' ? Math.min(Math.max(Math.floor(value), 0), MOST_LINES) : DEFAULT_LINES;
}

const positive = (value) => (typeof value === 'number' && value > 0 && value < 1e9 ? value : 0);

/** Refuses what parsers differ about: a member that is there twice, or is spelled with escapes. */
function checkSpelling(text) {
  const { found, depth } = members(text);
  if (depth > MAX_DEPTH) throw new Undecodable(`it is nested ${depth} levels deep`);
  const seen = new Set();
  for (const { name } of found) {
    const plain = name.includes('\\') ? JSON.parse(`"${name}"`) : name;
    if (!named.has(plain)) continue;
    if (plain !== name) throw new Undecodable(`the name ${plain} is written with escapes`);
    if (seen.has(plain)) throw new Undecodable(`it has ${plain} twice`);
    seen.add(plain);
  }
}

function read(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Undecodable(`no JSON: ${error.message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Undecodable('no JSON object');
  for (const name of ruled) {
    if (Object.hasOwn(value, name) && value[name] !== null && !rules[name](value[name])) throw new Undecodable(`${name} is wrong`);
  }
  if (!Object.hasOwn(value, 'class') || value.class === null) throw new Undecodable('it has no class');
  checkSpelling(text);
  return value;
}

/** The id of a job that has none: that of its message, or one made of its bytes, the same whenever it is delivered. */
const nameless = (body, messageId) => messageId || createHash('sha256').update(body).digest('hex').slice(0, 24);

/**
 * Reads a delivery. What it refuses, no worker can decode.
 *
 * @param {Buffer} body
 * @param {string} queue that it came from
 * @param {{messageId?: string, timestamp?: number, headers?: any}} properties of the message
 */
function parseJob(body, queue, { messageId = '', timestamp = 0, headers = {} } = {}) {
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

module.exports = { Undecodable, parseJob };
