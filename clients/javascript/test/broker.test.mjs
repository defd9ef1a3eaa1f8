// Clients and workers on a real broker, for what their users rely on. Scenarios with a sidecar are those of clients/conformance.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import amqplib from 'amqplib';
import { BulkError, Client, Closed, Discard, Kill, Refused, Unconfirmed, Unreachable, Worker } from 'millrace';
import { startBroker, startProxy } from './support/broker.mjs';

/** @type {any} */
let broker;
/** @type {any} */
let channel;
let connection;

before(async () => {
  broker = await startBroker();
  connection = await amqplib.connect(broker.url);
  connection.on('error', () => {}); // the test that needs it fails
  channel = await connection.createChannel();
  await channel.assertExchange('jobs.direct', 'direct');
  for (const queue of ['retries', 'dead_jobs', 'heartbeats', 'job_metrics']) await channel.assertQueue(queue);
});
after(async () => {
  await connection?.close();
  await broker?.stop();
});

/** A queue of the test's own, with jobs bound to it. */
async function aQueue(name) {
  await channel.assertQueue(`queue.${name}`, { maxPriority: 10 });
  await channel.bindQueue(`queue.${name}`, 'jobs.direct', name);
  return name;
}

const count = async (queue) => (await channel.checkQueue(queue)).messageCount;

/** Takes all messages of a queue, by jid. */
async function take(queue) {
  const found = new Map();
  for (let message; (message = await channel.get(queue, { noAck: true })); ) {
    const record = JSON.parse(message.content.toString());
    found.set(record.jid, record);
  }
  return found;
}

async function eventually(what, holds) {
  for (const until = Date.now() + 20_000; ; await sleep(20)) {
    if (await holds()) return;
    assert.ok(Date.now() < until, `not in time: ${what}`);
  }
}

function capture() {
  const lines = [];
  const logger = Object.fromEntries(['info', 'warn', 'error'].map((level) => [level, (text, fields) => lines.push({ level, text: text.replace('millrace: ', ''), ...fields })]));
  return { lines, logger: /** @type {any} */ (logger), of: (jid) => lines.filter((line) => line.jid === jid) };
}

test('a worker logs each failure with what comes next, and calls its hooks', async () => {
  const queue = await aQueue('failures');
  const { lines, logger, of } = capture();
  const called = [];
  const worker = new Worker({ url: broker.url, queues: [queue], logger });
  const fail = (job) => {
    throw new TypeError(`no ${job.args[0]}`);
  };
  worker.handle('Fail', fail);
  worker.handle('Bad', fail, { retryIn: () => {
    throw new RangeError('a bug in retryIn');
  } });
  worker.handle('Kill', () => {
    throw new Kill('no use');
  });
  worker.handle('Drop', () => {
    throw new Discard('not needed');
  });
  worker.handle('Fine', () => {});
  worker.on('failure', async (job, error) => {
    const before = [await count('retries'), await count('dead_jobs')];
    await sleep(100);
    called.push({ hook: 'failure', jid: job.jid, error, before });
    throw new Error('a bug in a hook');
  });
  worker.on('death', (job, error) => {
    called.push({ hook: 'death', jid: job.jid, error });
    throw new Error('another one');
  });
  const running = worker.run();

  const client = new Client({ url: broker.url });
  const ended = async (name, options = {}) => {
    const jid = await client.enqueue(name, ['entry'], { queue, ...options });
    await eventually(`${name} is acknowledged`, async () => of(jid).length > 0 && (await count(`queue.${queue}`)) === 0);
    await sleep(250); // hooks, records
    return { jid, lines: of(jid), hooks: called.filter((call) => call.jid === jid).map((call) => call.hook) };
  };

  const retried = await ended('Fail');
  assert.equal(retried.lines.length, 1);
  const [line] = retried.lines;
  assert.deepEqual([line.level, line.text, line.class, line.attempt, line.next], ['warn', 'job failed', 'Fail', 1, 'retry']);
  assert.deepEqual([line.errorClass, line.errorMessage], ['TypeError', 'no entry']);
  assert.match(line.stack, /^ {4}at .*broker\.test\.mjs/);
  assert.ok(line.retryIn >= 15 && line.retryIn <= 45, `${line.retryIn}`);
  const record = (await take('retries')).get(retried.jid);
  assert.equal(Math.round(record.retry_at * 1000), Date.parse(line.retryAt));
  const frames = record.backtrace.split('\n');
  assert.ok(frames.length <= 20 && /^at .*broker\.test\.mjs/.test(frames[0]), record.backtrace);
  assert.deepEqual(retried.hooks, ['failure']);
  assert.deepEqual(called[0].before, [0, 0], 'the hook runs before the retry is published');
  assert.ok(called[0].error instanceof TypeError, 'it gets the error that was thrown');
  assert.match(lines.find((l) => l.text === 'a failure hook failed').error, /a bug in a hook/);

  const killed = await ended('Kill', { backtrace: false });
  assert.deepEqual(killed.lines.map(({ level, text, next, reason, errorClass }) => [level, text, next, reason, errorClass]), [['warn', 'job failed', 'dead', 'killed', 'Killed']]);
  assert.deepEqual(killed.hooks, ['failure', 'death']);
  assert.equal((await take('dead_jobs')).get(killed.jid).backtrace, undefined);
  assert.ok(killed.lines[0].stack, 'the log has a stack all the same');

  const exhausted = await ended('Fail', { retry: 0, dead: false });
  assert.deepEqual(exhausted.lines.map(({ level, next, reason }) => [level, next, reason]), [['warn', 'discarded', 'exhausted']]);
  assert.deepEqual(exhausted.hooks, ['failure', 'death']);

  const unknown = await ended('Unknown');
  assert.deepEqual(unknown.lines.map(({ level, next, errorClass }) => [level, next, errorClass]), [['warn', 'retry', 'UnknownClass']]);
  assert.deepEqual(unknown.hooks, ['failure']);

  const dropped = await ended('Drop');
  assert.deepEqual(dropped.lines.map(({ level, text, reason }) => [level, text, reason]), [['info', 'job discarded', 'not needed']]);
  assert.deepEqual(dropped.hooks, []);

  const expired = await ended('Fine', { expiresAt: new Date(1) });
  assert.deepEqual(expired.lines.map(({ level, text, next, reason }) => [level, text, next, reason]), [['warn', 'job died', 'dead', 'expired']]);
  assert.deepEqual(expired.hooks, []);

  const bad = await ended('Bad');
  assert.deepEqual(bad.lines.map(({ level, text }) => [level, text]), [['warn', 'retryIn failed, the default backoff is used'], ['warn', 'job failed']]);
  assert.match(bad.lines[0].error, /a bug in retryIn/);
  assert.ok(bad.lines[1].retryIn >= 15, 'the default backoff');

  worker.stop();
  await running;
  await client.close();
  assert.equal(lines.filter((l) => l.text === 'worker started').length, 1);
  assert.equal(lines.at(-1).text, 'worker stopped');
});

test('a failure hook that hangs holds up the retry for five seconds, not for ever', async () => {
  const queue = await aQueue('hangs');
  const worker = new Worker({ url: broker.url, queues: [queue], logger: false });
  worker.handle('Fail', () => {
    throw new Error('x');
  });
  worker.on('failure', () => new Promise(() => {}));
  const running = worker.run();
  const client = new Client({ url: broker.url });
  const jid = await client.enqueue('Fail', [], { queue });
  await client.close();
  await eventually('the retry is published', async () => (await take('retries')).has(jid));
  worker.stop();
  await running;
});

test('Unconfirmed has the jid, under which the job can be enqueued again', async () => {
  const queue = await aQueue('unconfirmed');
  const proxy = await startProxy(broker.url);
  const client = new Client({ url: proxy.url });
  await client.enqueue('A', ['first'], { queue });
  proxy.hold();
  /** @type {any} */
  let error;
  await client.enqueue('A', ['second'], { queue, deadline: 0.5 }).catch((e) => {
    error = e;
  });
  assert.ok(error instanceof Unconfirmed, String(error));
  assert.match(error.jid, /^[0-9a-f]{32}$/);
  assert.match(error.message, /the job may have arrived/);
  await assert.rejects(client.enqueueBulk([{ class: 'A', options: { queue, jid: 'mine' } }], { deadline: 0.5 }), (e) => {
    assert.ok(e instanceof BulkError);
    return e.results[0].error instanceof Unconfirmed && e.results[0].error.jid === 'mine';
  });
  proxy.release();
  assert.equal(await client.enqueue('A', ['second'], { queue, jid: error.jid }), error.jid);
  assert.equal(await count(`queue.${queue}`), 4, 'both had arrived: a handler sees one jid twice');
  const waiting = client.enqueue('A', [], { queue });
  proxy.hold();
  const late = client.enqueue('A', [], { queue, jid: 'late' });
  late.catch(() => {});
  await waiting.catch(() => {});
  await sleep(50);
  await client.close();
  await assert.rejects(late, (e) => e instanceof Unconfirmed && e.jid === 'late');
  await assert.rejects(client.enqueue('A', [], { queue }), Closed);
  proxy.close();
});

test('a bulk with middleware is published in one go, not job by job', async () => {
  const queue = await aQueue('bulk');
  const proxy = await startProxy(broker.url);
  const client = new Client({ url: proxy.url });
  client.use((job, next) => next()).use(async (job, next) => next());
  await client.enqueue('A', [], { queue });
  // The broker's confirms come only when all jobs are sent: one after the other they never would be.
  proxy.hold();
  const jobs = Array.from({ length: 300 }, (_, n) => ({ class: 'A', args: [`bulk-${n}.`], options: { queue } }));
  const bulk = client.enqueueBulk(jobs, { deadline: 15 });
  bulk.catch(() => {});
  await eventually('all jobs are sent', async () => proxy.sent().includes('bulk-299.'));
  proxy.release();
  assert.equal(new Set(await bulk).size, 300);
  await client.close();
  proxy.close();
});

test('with the broker away, the timeout of the client is how long enqueue waits', async () => {
  const client = new Client({ url: 'amqp://guest:guest@127.0.0.1:1/', timeout: 0.3 });
  const begin = Date.now();
  await assert.rejects(client.enqueue('A'), Unreachable);
  assert.ok(Date.now() - begin < 3_000);
  await client.close();
  for (const options of [{ timeout: 0 }, { timeout: '1' }, { timout: 1 }]) {
    assert.throws(() => new Client(/** @type {any} */ ({ url: broker.url, ...options })), TypeError);
  }
});

test('a broker that demands a client certificate', async () => {
  const queue = await aQueue('tls');
  const { 'ca.pem': ca, 'client.pem': cert, 'client.key': key } = broker.files;
  const tls = { ca, cert, key };
  const seen = [];
  const worker = new Worker({ url: broker.tlsUrl, tls, queues: [queue], logger: false });
  worker.handle('Secret', (job) => {
    seen.push(job.args[0]);
    worker.stop();
  });
  const client = new Client({ url: broker.tlsUrl, tls: { ...tls, ca: ca.toString() } });
  await client.enqueue('Secret', ['by TLS'], { queue });
  await worker.run();
  assert.deepEqual(seen, ['by TLS']);
  await client.close();

  const refused = async (options, message) => {
    const other = new Client({ url: broker.tlsUrl, timeout: 2, ...options });
    await assert.rejects(other.enqueue('Secret', [], { queue }), message);
    await other.close();
  };
  await refused({ tls: { cert, key } }, /self-signed certificate|unable to verify/);
  await refused({ tls: { ca } }, Unreachable);
  await refused({ tls: { ...tls, servername: 'other.example' } }, /does not match/);
  assert.throws(() => new Client({ url: broker.url, tls }), /tls options need an amqps/);
  assert.throws(() => new Client({ url: broker.tlsUrl, tls: { cert: 'no PEM' } }), /millrace: tls: /);
});

test('a job for a queue that nobody declared is refused', async () => {
  const client = new Client({ url: broker.url });
  await assert.rejects(client.enqueue('A', [], { queue: 'nowhere' }), Refused);
  await client.close();
});
