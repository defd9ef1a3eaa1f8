// Clients and workers with a real broker: behaviour on which users rely. Scenarios with a sidecar
// are in clients/conformance.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import amqplib from 'amqplib';
import { BulkError, Client, Closed, Discard, Kill, Refused, Unconfirmed, Unreachable, Worker } from 'millrace-jobs';
import { startBroker, startProxy } from './support/broker.mjs';
import { capture, eventually } from './support/observe.mjs';

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

/** Returns a queue of its own for the test, bound to get its jobs. */
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
    await sleep(100);
    called.push({ hook: 'failure', jid: job.jid, error, published: await count('retries') });
    throw new Error('a bug in a hook');
  });
  worker.on('death', (job, error) => {
    called.push({ hook: 'death', jid: job.jid, error });
    throw new Error('another one');
  });
  const running = worker.run();

  const client = new Client({ url: broker.url });
  const enqueue = (name, options = {}) => client.enqueue(name, ['entry'], { queue, ...options });
  const retried = await enqueue('Fail');
  await eventually('the retry is published', async () => (await count('retries')) === 1);
  const others = {
    killed: await enqueue('Kill', { backtrace: false }), exhausted: await enqueue('Fail', { retry: 0, dead: false }), unknown: await enqueue('Unknown'),
    dropped: await enqueue('Drop'), expired: await enqueue('Fine', { expiresAt: new Date(1) }), bad: await enqueue('Bad'),
    gone: await enqueue('Fine', { expiresAt: new Date(1), dead: false }),
  };
  await client.close();
  await eventually('each has a line', () => Object.values(others).every((jid) => of(jid).some((line) => line.text.startsWith('job '))));
  worker.stop();
  await running; // all outcomes are settled
  const retries = await take('retries');
  const dead = await take('dead_jobs');
  const hooks = (jid) => called.filter((call) => call.jid === jid).map((call) => call.hook);
  const said = (jid, ...names) => of(jid).map((line) => names.map((name) => line[name]));

  const [line, ...more] = of(retried);
  assert.deepEqual(more, []);
  assert.deepEqual([line.level, line.text, line.class, line.queue, line.attempt, line.next], ['warn', 'job failed', 'Fail', queue, 1, 'retry']);
  assert.deepEqual([line.errorClass, line.error], ['TypeError', 'no entry']);
  assert.match(line.stack, /^ {4}at .*broker\.test\.mjs/);
  assert.ok(line.retryIn >= 15 && line.retryIn <= 45, `${line.retryIn}`);
  const record = retries.get(retried);
  assert.equal(Math.round(record.retry_at * 1000), Date.parse(line.retryAt));
  const frames = record.backtrace.split('\n');
  assert.ok(frames.length <= 20 && /^at .*broker\.test\.mjs/.test(frames[0]), record.backtrace);
  assert.deepEqual(hooks(retried), ['failure']);
  assert.equal(called[0].published, 0, 'the hook runs before the retry is published');
  assert.ok(called[0].error instanceof TypeError, 'it gets the error that was thrown');
  const hookFailed = lines.find((l) => l.text === 'a failure hook failed');
  assert.deepEqual([hookFailed.level, hookFailed.errorClass, hookFailed.error], ['error', 'Error', 'a bug in a hook']);

  assert.deepEqual(said(others.killed, 'level', 'text', 'next', 'reason', 'errorClass'), [['warn', 'job failed', 'dead', 'killed', 'Killed']]);
  assert.deepEqual(hooks(others.killed), ['failure', 'death']);
  assert.ok(dead.get(others.killed).backtrace === undefined && of(others.killed)[0].stack, 'a stack in the log alone');

  assert.deepEqual(said(others.exhausted, 'level', 'next', 'reason'), [['warn', 'discarded', 'exhausted']]);
  assert.deepEqual(hooks(others.exhausted), ['failure', 'death']);

  assert.deepEqual(said(others.unknown, 'level', 'next', 'errorClass'), [['warn', 'retry', 'UnknownClass']]);
  assert.deepEqual([hooks(others.unknown), retries.has(others.unknown)], [['failure'], true]);

  assert.deepEqual(said(others.dropped, 'level', 'text', 'reason'), [['info', 'job discarded', 'not needed']]);
  assert.deepEqual(said(others.expired, 'level', 'text', 'next', 'reason'), [['warn', 'job died', 'dead', 'expired']]);
  assert.deepEqual(said(others.gone, 'level', 'text', 'queue', 'reason'), [['info', 'job discarded', queue, 'expired']]);
  assert.deepEqual([hooks(others.dropped), hooks(others.expired), hooks(others.gone)], [[], [], []]);

  assert.deepEqual(said(others.bad, 'level', 'text'), [['warn', 'retryIn failed, the default backoff is used'], ['warn', 'job failed']]);
  assert.deepEqual(said(others.bad, 'queue', 'errorClass', 'error')[0], [queue, 'RangeError', 'a bug in retryIn']);
  assert.ok(of(others.bad)[1].retryIn >= 15, 'the default backoff');

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

test('a job whose handler hangs when the worker stops goes back to its queue, with a warning', async () => {
  const queue = await aQueue('hung');
  const { logger, of } = capture();
  const worker = new Worker({ url: broker.url, queues: [queue], stopTimeout: 0.1, logger });
  worker.handle('Hang', () => {
    worker.stop();
    return new Promise(() => {});
  });
  const client = new Client({ url: broker.url });
  const jid = await client.enqueue('Hang', [], { queue });
  await client.close();
  await worker.run();
  const text = 'job handed back, its handler did not end within the stop timeout';
  assert.deepEqual(of(jid), [{ level: 'warn', text, class: 'Hang', jid, queue, attempt: 1 }]);
  await eventually('it is in its queue', async () => (await count(`queue.${queue}`)) === 1);
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
  proxy.hold();
  const late = client.enqueue('A', [], { queue, jid: 'late' });
  late.catch(() => {});
  await eventually('it is sent', () => proxy.sent().includes('"jid":"late"'));
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
  // The broker's confirms come only after all jobs are sent. If each job waited for its confirm,
  // none would come.
  proxy.hold();
  const jobs = Array.from({ length: 300 }, (_, n) => ({ class: 'A', args: [`bulk-${n}.`], options: { queue } }));
  const bulk = client.enqueueBulk(jobs, { deadline: 60 });
  bulk.catch(() => {});
  await eventually('all jobs are sent', async () => proxy.sent().includes('bulk-299.'));
  proxy.release();
  assert.equal(new Set(await bulk).size, 300);
  await client.close();
  proxy.close();
});

test('enqueue resolves to the jid of the published job, independent of what middleware returns', async () => {
  const queue = await aQueue('jids');
  const client = new Client({ url: broker.url });
  const seen = [];
  client.use(async (job, next) => {
    seen.push(await next());
  });
  client.use(async (job, next) => {
    await next();
    return 'something else';
  });
  client.use((job, next) => {
    next(); // and it does not wait
  });
  const job = { class: 'A', options: { queue } };
  const jids = [await client.enqueue('A', [], { queue }), ...(await client.enqueueBulk([job, job]))];
  await client.close();
  assert.deepEqual(jids.toSorted(), [...(await take(`queue.${queue}`)).keys()].toSorted());
  assert.deepEqual(seen.toSorted(), jids.toSorted(), 'next resolves to the jid too');
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

test('with failFast, enqueue does not wait for a broker that is away', async () => {
  const client = new Client({ url: 'amqp://guest:guest@127.0.0.1:1/', timeout: 60, failFast: true });
  const begin = Date.now();
  for (let i = 0; i < 2; i++) await assert.rejects(client.enqueue('A'), (e) => e instanceof Unreachable && /ECONNREFUSED/.test(e.message));
  const bulk = client.enqueueBulk([{ class: 'A' }, { class: 'B' }]);
  await assert.rejects(bulk, (e) => e instanceof BulkError && e.results.every((r) => r.error instanceof Unreachable));
  assert.ok(Date.now() - begin < 30_000);
  await client.close();
  assert.throws(() => new Client(/** @type {any} */ ({ failFast: 'yes' })), /failFast is no boolean/);
});

test('a job for a queue that is not declared until the deadline is refused', async () => {
  const client = new Client({ url: broker.url });
  const refused = (error) => error.constructor === Refused && /^312 NO_ROUTE: .*"nowhere"; tried for [\d.]+ s$/.test(error.message);
  const queue = await aQueue('somewhere');
  await assert.rejects(client.enqueue('A', [], { queue: 'nowhere', deadline: 2 }), refused);
  const bulk = client.enqueueBulk([{ class: 'A', options: { queue: 'nowhere' } }, { class: 'A', options: { queue, jid: 'b' } }], { deadline: 2 });
  await assert.rejects(bulk, (e) => e instanceof BulkError && refused(e.results[0].error) && e.results[1].jid === 'b');
  await client.close();
});

/**
 * Returns a client on a network of its own, and a function that counts the messages returned there.
 */
async function watched(t) {
  const proxy = await startProxy(broker.url);
  const client = new Client({ url: proxy.url });
  t.after(async () => {
    await client.close();
    proxy.close();
  });
  return { client, returns: proxy.returns };
}

test('a job that the broker returns is published again', async (t) => {
  const { client, returns } = await watched(t);
  const other = await aQueue('routed');
  const one = client.enqueue('A', [], { queue: 'later', jid: 'j0' });
  const many = client.enqueueBulk(['later', other, 'later'].map((queue, i) => ({ class: 'A', options: { queue, jid: `j${i + 1}` } })));
  await eventually('the other one is enqueued', async () => (await count(`queue.${other}`)) === 1);
  await eventually('the broker has returned them', () => returns() > 1);
  await aQueue('later');
  assert.deepEqual([await one, await many], ['j0', ['j1', 'j2', 'j3']]);
  assert.equal(await count('queue.later'), 3);
  assert.equal(await count(`queue.${other}`), 1);
  assert.deepEqual([...(await take('queue.later')).keys()].toSorted(), ['j0', 'j1', 'j3']);
});

test('a client that is closed between two tries has not enqueued', async (t) => {
  /** @type {any} */
  let error;
  // On a busy machine the next try may have begun.
  for (let i = 0; i < 5 && !(error instanceof Closed); i++) {
    const { client, returns } = await watched(t);
    const enqueuing = client.enqueue('A', [], { queue: 'nowhere' }).catch((e) => {
      error = e;
    });
    await eventually('the broker returns it again and again', () => returns() > 3);
    await client.close();
    await enqueuing;
  }
  assert.ok(error instanceof Closed, String(error));
});
