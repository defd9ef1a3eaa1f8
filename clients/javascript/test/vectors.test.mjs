import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { hostname as osHostname } from 'node:os';
import { test } from 'node:test';
import { Begins } from '../dist/engine/begins.js';
import { Engine } from '../dist/engine/engine.js';
import { heartbeat } from '../dist/engine/heartbeat.js';
import { Metrics } from '../dist/engine/metrics.js';
import { Discard, HandBack, Invalid, Kill, RetryIn, Timeout } from '../dist/errors.js';
import { millis, parse, properties } from '../dist/format.js';
import { splitHosts, tryOrder } from '../dist/hosts.js';
import { queueDefinition } from '../dist/governed.js';
import { Job } from '../dist/job.js';
import { delivery } from '../dist/message.js';
import { backoff, expire, judge, poisoned, unknownClass } from '../dist/outcome.js';
import { Undecodable, parseJob } from '../dist/parse.js';
import { settings } from '../dist/settings.js';
import { verdictOf } from '../dist/verdict.js';
import { prepare } from '../dist/write.js';

const vectors = (name, each) => test(name, async (t) => {
  const cases = JSON.parse(readFileSync(new URL(`../../conformance/vectors/${name}.json`, import.meta.url), 'utf8'));
  assert.ok(cases.length > 0);
  for (const c of cases) await t.test(c.name, () => each(c));
});

const body = (c) => (c.body_base64 === undefined ? Buffer.from(c.body) : Buffer.from(c.body_base64, 'base64'));

/** Returns the rest of a record that has exactly these bytes as its job. */
function withoutJob(record, job) {
  const text = record.toString();
  const tail = `,"job":${job}}`;
  assert.ok(text.endsWith(tail), `${text} has not the job ${job}`);
  return JSON.parse(`${text.slice(0, -tail.length)}}`);
}

/** @type {any} */
const boom = { kind: 'fail', errorClass: 'Boom', message: 'it broke' };

vectors('hosts', (c) => {
  if (c.error) assert.throws(() => splitHosts(c.urls), { name: 'TypeError', message: `millrace: ${c.error}` });
  else assert.deepEqual(splitHosts(c.urls), c.hosts);
});

vectors('host_order', (c) => {
  const firsts = new Set();
  for (let n = 0; n < 200; n++) {
    const order = tryOrder(c.hosts, c.good ?? undefined, c.lost);
    if (order.length > 0) firsts.add(order[0]);
    for (const group of c.order) assert.deepEqual(order.splice(0, group.length).sort(), group.toSorted());
    assert.deepEqual(order, []);
  }
  assert.deepEqual([...firsts].sort(), c.order[0].toSorted(), 'each comes first at times');
});

/** Returns a worker's engine that has followed messages, without a broker. */
function engineOf(options, messages) {
  /** @type {any} */
  const host = { log() {}, async hook() {}, stopping() {} };
  /** @type {any} */
  const config = { ...settings(options), credentials: false, library: '1', classes: new Set(), failureHooks: false };
  const engine = new Engine(config, host);
  for (const message of messages) engine.obey(parse(Buffer.from(message.replaceAll('IDENTITY', engine.identity))));
  return engine;
}

vectors('control', (c) => {
  const engine = engineOf({ queues: ['a', 'b'] }, c.messages);
  assert.deepEqual([engine.state, [...engine.paused].sort()], [c.state, c.paused]);
});

vectors('heartbeat', (c) => {
  const { identity, hostname, pid, beat, rss_kb, started_at, ...rest } =
    JSON.parse(JSON.stringify(heartbeat(engineOf(c.worker, c.messages), c.rtt_us ?? undefined)));
  assert.deepEqual(rest, c.heartbeat);
  assert.deepEqual([hostname, pid], [osHostname(), process.pid]);
  assert.equal(identity, c.identity.replace('HOSTNAME', hostname).replace('PID', pid));
  assert.ok(started_at <= beat && Number.isInteger(rss_kb));
});

vectors('metrics', ({ delivery, ended, took, metric }) => {
  const { queue, message_id: messageId, timestamp } = delivery;
  const metrics = new Metrics('me');
  metrics.add(parseJob(body(delivery), queue, { messageId, timestamp }), { status: 'success' }, (ended - took) * 1000, ended * 1000);
  assert.deepEqual(JSON.parse(JSON.stringify(metrics.waiting)), [metric]);
  metrics.flush(); // ends its timer too
});

vectors('backoff', ({ retry_count: n, min, max }) => {
  assert.equal(backoff(n, () => 0), min);
  assert.equal(backoff(n, () => 1 - 2 ** -53), max);
});

vectors('splice', (c) => {
  const { record } = judge(parseJob(body(c), c.queue), boom);
  JSON.parse(record.toString());
  withoutJob(record, c.job);
});

vectors('undecodable', (c) => {
  if (!c.decodable) {
    assert.throws(() => parseJob(body(c), 'default'), Undecodable);
    return;
  }
  const job = parseJob(body(c), 'default', { messageId: 'none' });
  assert.equal(job.jid, c.jid || 'none');
  assert.equal(job.class, c.class);
  assert.equal(job.retry, c.retry);
  assert.equal(job.retryCount, c.retry_count);
});

vectors('poison', (c) => {
  const begins = new Begins();
  for (const record of c.stream) begins.apply(record);
  const gone = new Set(c.gone);
  const blames = begins.blame(c.key, c.queue, c.self, c.enqueued_at, gone);
  assert.equal(blames, c.blames);
  begins.apply({ type: 'begun', process: c.self, ...c.key, blames, at: 1700000099 });
  assert.equal(begins.deaths(c.key, c.self, gone), c.deaths);
});

/** Returns an error with exactly this backtrace. */
const traced = (error, backtrace = []) => Object.assign(error, { stack: ['Error', ...backtrace.map((line) => `    at ${line}`)].join('\n') });

/** Returns an error as a handler would throw it. */
const thrown = ({ error_class: name, error_message: message, backtrace }) => traced(Object.assign(new Error(message), { name }), backtrace);

async function outcomeOf(job, o, now) {
  /** @type {any} */
  const handled = new Job(job, new AbortController().signal);
  const at = { now, stopping: o.stopping };
  const fails = async (error) => {
    /** @type {any} */
    const { verdict } = await verdictOf(error, handled);
    verdict.backtrace = verdict.backtrace?.map((line) => line.replace(/^at /, ''));
    return judge(job, verdict, at);
  };
  switch (o.kind) {
    case 'success':
      return judge(job, { kind: 'success' }, at);
    case 'fail':
      return fails(thrown(o));
    case 'retry_in':
      return fails(new RetryIn(o.seconds, thrown(o)));
    case 'discard':
      return fails(new Discard('why not'));
    case 'kill':
      return fails(traced(new Kill(o.message)));
    case 'hand_back':
      return fails(traced(new HandBack()));
    case 'timeout':
      handled.cancel(new Timeout(o.seconds));
      return fails(traced(new Error('any')));
    case 'unknown_class':
      return judge(job, unknownClass(job.class), at);
    case 'expired':
      assert.ok(job.expiresAt < now);
      return expire(job, now);
    default:
      assert.equal(o.kind, 'poison');
      return poisoned(job, o.deaths, now);
  }
}

function checkRecord(c, outcome) {
  assert.equal(outcome.stream ?? null, c.stream);
  if (c.stream === null) {
    assert.equal(outcome.record, undefined);
    return;
  }
  const got = withoutJob(outcome.record, c.job);
  assert.deepEqual(Object.keys(got).sort(), Object.keys(c.record).sort());
  for (const [name, want] of Object.entries(c.record)) {
    if (want?.min !== undefined) assert.ok(got[name] >= want.min && got[name] <= want.max, `${name}: ${got[name]}`);
    else assert.deepEqual(got[name], want, name);
  }
}

function checkMetric(want, job, outcome, now) {
  const metrics = new Metrics('me');
  if (outcome.status) metrics.add(job, outcome, now, now);
  const [got] = metrics.waiting;
  metrics.flush(); // ends its timer too
  if (want === null) assert.equal(got, undefined);
  else for (const name of [...Object.keys(want), 'error_class']) assert.deepEqual(got[name], want[name], name);
}

vectors('outcomes', async (c) => {
  const { delivery } = c;
  const parse = () => parseJob(body(delivery), delivery.queue, { messageId: delivery.message_id, headers: delivery.headers });
  if (c.outcome.kind === 'undecodable') {
    assert.throws(parse, Undecodable);
    return;
  }
  const job = parse();
  const now = millis(c.now);
  const outcome = await outcomeOf(job, c.outcome, now);
  checkRecord(c, outcome);
  assert.equal(outcome.then, c.then);
  checkMetric(c.metric, job, outcome, now);
  if (c.stream) assert.deepEqual(properties(job.jid, job.class, 0, job.headers.traceparent).headers, c.headers);
});

const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

/** Checks the message that a client publishes. */
function published(c) {
  const { expires_at: expires, ...given } = { jid: c.jid, ...c.options };
  const options = Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), value]));
  if (expires !== undefined) options.expiresAt = new Date(millis(expires));
  const job = { class: c.class, args: c.args, options, at: c.at === undefined ? undefined : new Date(millis(c.at)) };
  if (c.error) {
    assert.throws(() => prepare(job, millis(c.now)), Invalid);
    return;
  }
  const message = prepare(job, millis(c.now));
  assert.equal(message.exchange, c.exchange);
  assert.equal(message.key, c.routing_key);
  assert.deepEqual(JSON.parse(message.body.toString()), c.body);
  const p = message.properties;
  assert.deepEqual({
    content_type: p.contentType, delivery_mode: p.deliveryMode, message_id: p.messageId, type: p.type ?? null, priority: p.priority,
    mandatory: p.mandatory, headers: p.headers,
  }, c.properties);
}

vectors('publish', published);
vectors('unique', published);

vectors('queues', ({ queue: { max_waiting: maxWaiting, ...others }, error }) => {
  const define = () => queueDefinition(/** @type {any} */ ({ ...others, maxWaiting }));
  if (error) assert.throws(define, Invalid);
  else assert.deepEqual(define(), { ...others, ...(maxWaiting && { max_waiting: maxWaiting }) });
});

vectors('messages', (c) => {
  const { routing_key: routingKey, body_base64: coded, properties, ...message } = c.message;
  if (routingKey !== undefined) message.routingKey = routingKey;
  if (coded !== undefined) message.body = new Uint8Array(Buffer.from(coded, 'base64'));
  if (properties) message.properties = Object.fromEntries(Object.entries(properties).map(([name, value]) => [camel(name), value]));
  if (properties?.timestamp) message.properties.timestamp = new Date(millis(properties.timestamp));
  const { expires_at: expires, ...given } = { jid: c.jid, ...c.options };
  const options = Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), value]));
  if (expires !== undefined) options.expiresAt = new Date(millis(expires));
  const publish = () => prepare({ .../** @type {any} */ (delivery(message, options)), at: new Date(millis(c.at)) }, millis(c.now));
  if (c.error) {
    assert.throws(publish, Invalid);
    return;
  }
  const { exchange, key, body } = publish();
  assert.deepEqual([exchange, key], ['', 'scheduled_jobs']);
  assert.deepEqual(JSON.parse(body.toString()), c.record);
});
