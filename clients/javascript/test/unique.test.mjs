// Unique jobs, with a real broker, and a queue that stands for the leader's stream.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import amqplib from 'amqplib';
import { Client, Invalid, Kill, Refused, Undecided, Unreachable, Worker, defineJob } from 'millrace-jobs';
import { Fake, Inline } from 'millrace-jobs/testing';
import { startBroker } from './support/broker.mjs';
import { eventually } from './support/observe.mjs';

/** @type {any} */
let broker;
/** @type {any} */
let connection;

before(async () => {
  broker = await startBroker();
  connection = await amqplib.connect(broker.url);
});
after(async () => {
  await connection?.close();
  await broker?.stop();
});

/** Takes unique jobs, as a leader does. The answers are given in order; undefined is no answer. */
async function deciding(t, ...answers) {
  const jobs = [];
  const leader = await connection.createChannel();
  await leader.assertQueue('jobs.gated');
  await leader.consume('jobs.gated', (message) => {
    if (!message) return; // the queue was deleted
    const { content, properties } = message;
    jobs.push(JSON.parse(content.toString()));
    const answer = answers.shift();
    if (answer) leader.sendToQueue(properties.replyTo, Buffer.from(JSON.stringify(answer)), { correlationId: properties.correlationId });
  }, { noAck: true });
  t.after(async () => {
    await leader.deleteQueue('jobs.gated');
    await leader.close();
  });
  return jobs;
}

const OTHER = { status: 200, jid: 'mine', duplicate_of: 'other' };

test('the leader says which job stays', async (t) => {
  const jobs = await deciding(t, { status: 201, jid: 'mine' }, OTHER, { status: 200, jid: 'other' }, { status: 503, reason: 'it is full' });
  const client = new Client({ url: broker.url });
  assert.deepEqual(await client.enqueueUnique('A', [1], { jid: 'mine' }), { jid: 'mine', duplicate: false });
  const keyed = defineJob('Keyed', { unique: { key: 'k', for: 60 } });
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(await client.enqueueUnique(keyed, [], { jid: 'mine', at: new Date(1800000000000) }), { jid: 'other', duplicate: true });
  }
  await assert.rejects(client.enqueueUnique('A'), (error) => error instanceof Refused && /it is full/.test(error.message));
  const later = { unique: { key: 'k', for: 60 }, at: 1800000000 };
  assert.deepEqual(jobs.slice(0, 3).map(({ gate }) => gate), [{ unique: {} }, later, later]);
  await client.close();
});

test('no decision comes', async (t) => {
  const jobs = await deciding(t);
  const client = new Client({ url: broker.url });
  await assert.rejects(client.enqueueUnique('A', [], { jid: 'late', deadline: 2 }), (/** @type {any} */ error) => (
    error instanceof Undecided && error.jid === 'late' && /the job is published.*no leader has answered/.test(error.message)));
  const asked = client.enqueueUnique('A');
  await eventually('both have come', () => jobs.length === 2);
  await sleep(100); // for the confirm
  await client.close();
  await assert.rejects(asked, (error) => error instanceof Undecided && /closed/.test(error.message));
});

test('a job that is not published is not undecided', async () => {
  const away = new Client({ url: 'amqp://guest:guest@127.0.0.1:1/' });
  await assert.rejects(away.enqueueUnique('A', [], { deadline: 0.2 }), Unreachable);
  await assert.rejects(away.enqueueUnique('A', [], { unique: { max: 3 } }), Invalid);
  await assert.rejects(away.publishIn(60, { exchange: 'orders' }, /** @type {any} */ ({ unique: true })), Invalid);
  await assert.rejects(away.publishIn(60, { exchange: 'orders' }, /** @type {any} */ ({ limitKey: 'k' })), Invalid);
  await assert.rejects(away.define('app', [{ name: 'a', class: 'A', every: 60, options: /** @type {any} */ ({ unique: true }) }]), Invalid);
  await away.close();
  const client = new Client({ url: broker.url });
  await assert.rejects(client.enqueueUnique('A', [], { deadline: 1 }), Refused); // there is no jobs.gated
  await client.close();
});

test('middleware sees a unique job, and may keep it', async (t) => {
  const jobs = await deciding(t, OTHER);
  const client = new Client({ url: broker.url }).use((job, next) => {
    job.options.tags = ['seen'];
    return job.class === 'Swallowed' ? undefined : next();
  });
  assert.deepEqual(await client.enqueueUnique('Swallowed'), { jid: '', duplicate: false });
  assert.equal((await client.enqueueUnique('A')).jid, 'other');
  assert.deepEqual(jobs[0].tags, ['seen']);
  await client.close();
});

test('a Fake does not enqueue a duplicate', async () => {
  const during = [];
  const worker = new Worker({ logger: false }).handle('A', async (job) => {
    if (job.attempt > 1) return;
    during.push(await fake.enqueueUnique('A', [1]));
    throw new Error('fails');
  });
  worker.handle('Kill', () => {
    throw new Kill('no');
  });
  const fake = new Fake(worker);
  const { jid } = await fake.enqueueUnique('A', [1]);
  assert.deepEqual(await fake.enqueueUnique('A', [1]), { jid, duplicate: true });
  await fake.enqueue('A', [1], { unique: true });
  assert.equal(fake.jobs().length, 1);
  await assert.rejects(fake.drain());
  assert.deepEqual(during, [{ jid, duplicate: true }]);
  assert.equal((await fake.enqueueUnique('A', [1])).duplicate, true); // it waits for a retry
  await fake.drain({ retries: true });
  assert.equal((await fake.enqueueUnique('A', [1])).duplicate, false);
  fake.clear();

  const customer = /** @type {const} */ ({ by: ['args.0.customer'], on: 'replace' });
  await fake.enqueue('A', [{ customer: 1, n: 1 }], { unique: customer });
  assert.equal((await fake.enqueueUnique('A', [{ customer: 1, n: 2 }], { unique: customer, at: new Date(2e12) })).duplicate, false);
  assert.deepEqual(fake.jobs().map(({ args, at }) => [args[0].n, at?.getTime()]), [[2, 2e12]]);
  fake.clear();

  await fake.enqueue('Kill', [], { unique: { key: 'hour', for: 3600 } });
  await fake.enqueue('Kill', [], { unique: { key: 'dead' } });
  await assert.rejects(fake.drain());
  assert.equal((await fake.enqueueUnique('A', [], { unique: { key: 'hour' } })).duplicate, true);
  assert.equal((await fake.enqueueUnique('A', [], { unique: { key: 'dead' } })).duplicate, false);
});

test('a key that is taken while the job waits is free when it runs', async () => {
  for (const make of [(w) => new Fake(w), (w) => new Inline(w)]) {
    const during = [];
    const unique = /** @type {const} */ ({ while: 'waiting' });
    const worker = new Worker({ logger: false }).handle('A', async () => {
      if (during.push(undefined) === 1) during[0] = await client.enqueueUnique('A', [], { unique });
    });
    const client = make(worker);
    await client.enqueue('A', [], { unique });
    if (client instanceof Fake) await client.drain();
    assert.equal(during[0].duplicate, false);
    assert.equal((await client.enqueueUnique('A')).duplicate, false);
  }
});
