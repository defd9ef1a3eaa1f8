// Jobs that limits count, with a real broker, and a queue that stands for the leader's.
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import amqplib from 'amqplib';
import { Client, Invalid, Kill, Worker, defineJob } from 'millrace-jobs';
import { Fake } from 'millrace-jobs/testing';
import { prepare } from '../dist/write.js';
import { startBroker } from './support/broker.mjs';
import { capture, eventually } from './support/observe.mjs';

/** @type {any} */
let broker;
/** @type {any} */
let channel;
let connection;

before(async () => {
  broker = await startBroker();
  connection = await amqplib.connect(broker.url);
  channel = await connection.createChannel();
  await channel.assertExchange('jobs.direct', 'direct');
  for (const queue of ['jobs.gated', 'scheduled_jobs', 'retries', 'dead_jobs', 'heartbeats', 'job_metrics']) await channel.assertQueue(queue);
});
after(async () => {
  await connection?.close();
  await broker?.stop();
});

const identity = `${hostname()}:${process.pid}`; // of the workers here

/** Takes all messages of a queue. */
async function take(queue) {
  const found = [];
  for (let message; (message = await channel.get(queue, { noAck: true })); ) found.push(JSON.parse(message.content.toString()));
  return found;
}

const count = async (queue) => (await channel.checkQueue(queue)).messageCount;

/** Takes the commands of workers, as a leader does. `claims` has its answers to claims, in order. */
async function leading(t, below, claims = []) {
  const asked = [];
  const leader = await connection.createChannel();
  await leader.assertQueue('jobs.leader', { durable: false });
  await leader.consume('jobs.leader', (message) => {
    if (!message) return; // the queue was deleted
    const { content, properties } = message;
    const command = JSON.parse(content.toString());
    if (command.command === 'claim') asked.push(command);
    const answer = command.command === 'state' ? { status: 200, paused: [], claim_below: below } : claims.shift();
    if (answer) leader.sendToQueue(properties.replyTo, Buffer.from(JSON.stringify(answer)), { correlationId: properties.correlationId });
  }, { noAck: true });
  t.after(async () => {
    await leader.deleteQueue('jobs.leader');
    await leader.close();
  });
  return asked;
}

/** Puts jobs into a queue as a sidecar does: the headers are by jid. */
async function fire(queue, jobs) {
  await channel.assertQueue(`queue.${queue}`, { maxPriority: 10 });
  for (const [jid, { class: name = 'Run', headers }] of Object.entries(jobs)) {
    channel.sendToQueue(`queue.${queue}`, Buffer.from(JSON.stringify({ jid, class: name, queue, gate: { key: 'k' } })), { headers });
  }
}

const slotted = (jid, more = {}) => ({ 'millrace-slot': `slot-${jid}`, 'millrace-epoch': 7, 'millrace-op': 'fired', ...more });

/** Runs a worker on a queue, and returns it with the jids that it has run. */
function working(t, queue, options = {}) {
  const { logger } = capture();
  const ran = [];
  const worker = new Worker({ url: broker.url, queues: [queue], logger, ...options });
  worker.handle('Run', (job) => {
    ran.push(job.jid);
  });
  worker.handle('Fail', () => {
    throw new Error('fails');
  });
  worker.handle('Kill', () => {
    throw new Kill('no use');
  });
  const running = worker.run();
  const stop = async () => {
    worker.stop();
    await running;
  };
  t.after(stop);
  return { ran, stop };
}

test('a limited job goes to jobs.gated, and keeps its key', async () => {
  const client = new Client({ url: broker.url });
  const imports = defineJob('Import', { limitKey: 'ann', queue: 'imports' });
  await client.enqueue(imports);
  await client.enqueue(imports, [], { limitKey: 'bob' });
  await client.enqueueBulk([{ class: 'Any', options: { limited: true } }, { class: imports, options: { priority: 3 } }]);
  await client.enqueueIn(60, imports);
  await client.close();
  const gates = (jobs) => jobs.map(({ queue, gate }) => [queue, gate]);
  assert.deepEqual(gates(await take('jobs.gated')), [['imports', { key: 'ann' }], ['imports', { key: 'bob' }], ['default', {}], ['imports', { key: 'ann' }]]);
  const [{ type, job }] = await take('scheduled_jobs');
  assert.deepEqual([type, job.queue, job.gate], ['scheduled_job', 'imports', { key: 'ann' }]);
});

test('keys that are wrong are refused, and the name of the member is taken', () => {
  for (const options of [{ limitKey: 'a\nb' }, { limitKey: '\ud800' }, { limitKey: 'é'.repeat(101) }, { limitKey: 7 }, { limited: 'yes' }, { fields: { gate: {} } }]) {
    assert.throws(() => prepare({ class: 'A', options: /** @type {any} */ (options) }), Invalid, JSON.stringify(options));
  }
  const gate = (options) => JSON.parse(prepare({ class: 'A', options }).body.toString()).gate;
  assert.deepEqual([gate({}), gate({ limited: false }), gate({ limited: false, limitKey: 'é'.repeat(100) })], [undefined, undefined, { key: 'é'.repeat(100) }]);
});

test('the end of a job is reported before its delivery is answered', async (t) => {
  const asked = await leading(t, 7);
  await fire('ends', { done: { headers: slotted('done') }, failed: { class: 'Fail', headers: slotted('failed') },
    killed: { class: 'Kill', headers: slotted('killed') }, free: { headers: {} } });
  channel.sendToQueue('queue.ends', Buffer.from('no job'), { headers: slotted('rejected') });
  const { ran, stop } = working(t, 'ends');
  // There is no jobs.ends yet: the ends are returned.
  await eventually('the records are published', async () => (await count('retries')) === 1 && (await count('dead_jobs')) === 1 && ran.length === 2);
  await sleep(300);
  assert.equal((await channel.checkQueue('queue.ends')).messageCount, 0, 'all are out');
  await channel.assertQueue('jobs.ends');
  await eventually('all ends are reported', async () => (await count('jobs.ends')) === 4);
  await stop();
  const ends = await take('jobs.ends');
  assert.deepEqual(ends.map(({ slot }) => slot).sort(), ['slot-done', 'slot-failed', 'slot-killed', 'slot-rejected']);
  for (const { type, process, at } of ends) assert.deepEqual([type, process, Math.abs(at - Date.now() / 1000) < 60], ['ended', identity, true]);
  assert.equal(await count('queue.ends'), 0);
  assert.deepEqual(asked, [], 'none was claimed');
  await Promise.all([take('retries'), take('dead_jobs')]);
});

test('a delivery that is not reported as ended is not answered', async (t) => {
  await leading(t, 0);
  await channel.deleteQueue('jobs.ends');
  await fire('kept', { kept: { headers: slotted('kept') } });
  const { ran, stop } = working(t, 'kept', { stopTimeout: 0.2 });
  await eventually('it has run', () => ran.length === 1);
  await sleep(300);
  await stop();
  await eventually('it is back', async () => (await count('queue.kept')) === 1);
  await channel.assertQueue('jobs.ends');
});

test('a job that may have begun before is claimed, and dropped if the leader says so', async (t) => {
  const asked = await leading(t, 7, [{ status: 200, claim: 'run' }, { status: 200, claim: 'drop' }, { status: 503 }, undefined, { status: 200, claim: 'run' }]);
  const { ran, stop } = working(t, 'claims', { concurrency: 1 });
  const fired = (jid, more = {}) => fire('claims', { [jid]: { headers: slotted(jid, more) } });
  await fired('new');
  await eventually('it runs', () => ran.at(-1) === 'new');
  assert.deepEqual(asked, []);
  await fired('flagged', { 'millrace-claim': '1' });
  await fired('dropped', { 'millrace-op': 'refired' });
  await fired('old', { 'millrace-epoch': 6 });
  await eventually('it is claimed until there is an answer', () => ran.at(-1) === 'old');
  await fire('claims', { last: { headers: { 'millrace-claim': '1' } } });
  await eventually('without a slot it runs', () => ran.at(-1) === 'last');
  await stop();
  assert.deepEqual(ran, ['new', 'flagged', 'old', 'last']);
  assert.deepEqual(asked.map(({ slot, process }) => [slot, process]), ['flagged', 'dropped', 'old', 'old', 'old'].map((jid) => [`slot-${jid}`, identity]));
  assert.equal(await count('queue.claims'), 0, 'the dropped job is acknowledged');
  assert.deepEqual((await take('jobs.ends')).map(({ slot }) => slot), ['slot-new', 'slot-flagged', 'slot-old']);
});

test('a job that is delivered again is claimed, before its worker counts as dead', async (t) => {
  const asked = await leading(t, 0, [{ status: 200, claim: 'drop' }, { status: 200, claim: 'run' }]);
  await fire('again', { dropped: { headers: slotted('dropped') }, runs: { headers: slotted('runs') } });
  const taker = await connection.createChannel();
  await eventually('both are there', async () => (await count('queue.again')) === 2);
  await taker.get('queue.again');
  await taker.get('queue.again');
  await taker.close(); // both go back
  await eventually('both are back', async () => (await count('queue.again')) === 2);
  const { ran, stop } = working(t, 'again', { concurrency: 1 });
  await eventually('the other runs', () => ran.length === 1);
  await stop();
  assert.deepEqual([ran, asked.map(({ slot }) => slot)], [['runs'], ['slot-dropped', 'slot-runs']]);
  assert.deepEqual((await take('jobs.ends')).map(({ slot }) => slot), ['slot-runs']);
  assert.equal(await count('queue.again'), 0);
});

test('without an answer the job does not run, and goes back when the worker stops', async (t) => {
  await fire('unled', { waits: { headers: slotted('waits') } });
  const { ran, stop } = working(t, 'unled');
  await eventually('it is out', async () => (await count('queue.unled')) === 0);
  await sleep(500);
  await stop();
  await eventually('it is back', async () => (await count('queue.unled')) === 1);
  assert.deepEqual([ran, await take('jobs.ends')], [[], []]);
});

test('limits are defined beside periodic jobs', async () => {
  const commands = [];
  const leader = await connection.createChannel();
  await leader.assertQueue('jobs.leader', { durable: false });
  await leader.consume('jobs.leader', ({ content, properties }) => {
    commands.push(JSON.parse(content.toString()).definitions);
    leader.sendToQueue(properties.replyTo, Buffer.from('{"status":200,"defined":{"made":["imports"]}}'), { correlationId: properties.correlationId });
  }, { noAck: true });
  const client = new Client({ url: broker.url });
  const imports = { name: 'imports', queues: ['imports'], classes: ['Import'], per: /** @type {const} */ (['key']), concurrency: 3,
    rate: { jobs: 100, seconds: 60, burst: 1 }, overrides: { 'customer-42': { concurrency: 10 } }, paused: false };
  assert.deepEqual((await client.define('app', undefined, { limits: [imports] })).made, ['imports']);
  await client.define('app', [], { limits: [] });
  await client.define('app', [{ name: 'poll', class: 'Poll', every: 60, options: { limitKey: 'k' } }]);
  await assert.rejects(client.define('app'), Invalid);
  await assert.rejects(client.define('app', [], { limits: [/** @type {any} */ ({ name: 'a', concurency: 1 })] }), Invalid);
  await client.close();
  assert.deepEqual(commands, [
    { source: 'app', limits: [imports] }, { source: 'app', periodic_jobs: [], limits: [] },
    { source: 'app', periodic_jobs: [{ name: 'poll', every: 60, job: { class: 'Poll', args: [], queue: 'default', gate: { key: 'k' } } }] },
  ]);
  await leader.close();
  await channel.deleteQueue('jobs.leader');
});

test('test helpers keep gates and limits', async () => {
  const ran = [];
  const fake = new Fake(new Worker({ logger: false }).handle('A', (job) => ran.push(job.jid)));
  await fake.enqueue('A', [], { limitKey: 'k' });
  await fake.enqueueIn(60, 'A', [], { limited: true });
  await fake.enqueue('A');
  assert.deepEqual(fake.jobs().map(({ gate }) => gate), [{ key: 'k' }, {}, undefined]);
  assert.equal(await fake.drain(), 3);
  const [a, b] = [{ name: 'a', concurrency: 1 }, { name: 'b', concurrency: 2 }];
  assert.deepEqual((await fake.define('app', [{ name: 'p', class: 'A', every: 60 }], { limits: [a, b] })).made, ['p', 'a', 'b']);
  assert.deepEqual(await fake.define('app', undefined, { limits: [{ ...a, concurrency: 3 }] }), { made: [], changed: ['a'], forgotten: ['b'], unchanged: 0 });
  assert.deepEqual([fake.periodic('app').length, fake.limits('app'), fake.limits('other')], [1, [{ name: 'a', concurrency: 3 }], []]);
  await assert.rejects(fake.define('app', [], { limits: [/** @type {any} */ ({ name: 'a', per_key: 1 })] }), Invalid);
});
