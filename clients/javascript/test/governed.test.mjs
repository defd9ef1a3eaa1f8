// Governed queues: how they are defined, and what a producer hears of a full one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import amqplib from 'amqplib';
import { Client, Invalid, Refused, Worker } from 'millrace-jobs';
import { Fake, Inline } from 'millrace-jobs/testing';
import { queueDefinition } from '../dist/governed.js';
import { startBroker } from './support/broker.mjs';

let broker;
let connection;
let channel;

before(async () => {
  broker = await startBroker();
  connection = await amqplib.connect(broker.url);
  channel = await connection.createChannel();
});
after(async () => {
  await connection?.close();
  await broker?.stop();
});

const imports = { name: 'imports', key: 'args.0.customer_id', maxWaiting: 100_000, weights: { 'customer-42': 3 }, ahead: 20, paused: true };

test('queues are defined beside limits', async () => {
  const commands = [];
  await channel.assertQueue('jobs.leader');
  await channel.consume('jobs.leader', ({ content, properties }) => {
    commands.push(JSON.parse(content.toString()).definitions);
    const answer = Buffer.from(JSON.stringify({ status: 200, defined: { made: ['imports'] } }));
    channel.sendToQueue(properties.replyTo, answer, { correlationId: properties.correlationId });
  }, { noAck: true });
  const client = new Client({ url: broker.url });
  assert.deepEqual((await client.define('billing', undefined, { queues: [imports] })).made, ['imports']);
  await client.define('billing', undefined, { limits: [], queues: [] });
  await assert.rejects(client.define('billing', undefined, { queues: [{ name: '' }] }), Invalid);
  await client.close();
  const { maxWaiting, ...others } = imports;
  assert.deepEqual(commands, [{ source: 'billing', queues: [{ ...others, max_waiting: maxWaiting }] }, { source: 'billing', limits: [], queues: [] }]);
});

test('errors say what is wrong', () => {
  const wrong = /** @type {[any, RegExp][]} */ ([
    [{ maxWaiting: 0 }, /"imports": maxWaiting must be a whole number from 1 to 1000000000/],
    [{ ahead: 1.5 }, /ahead must be a whole number/],
    [{ weights: { a: '1' } }, /the weight of key "a" must be a whole number from 1 to 1000/],
    [{ key: '.0' }, /key must be a path into the job, such as args.0.customer_id/],
    [{ max_waiting: 1 }, /there is no option max_waiting/],
  ]);
  for (const [options, message] of wrong) assert.throws(() => queueDefinition({ name: 'imports', ...options }), { name: 'Invalid', message });
});

test('the replacements keep queues', async () => {
  for (const client of [new Fake(), new Inline(new Worker({ url: 'amqp://nowhere.invalid' }))]) {
    const [mails, changed] = [{ name: 'mails' }, { name: 'mails', ahead: 2 }];
    assert.deepEqual((await client.define('app', [], { queues: [imports, mails] })).made, ['imports', 'mails']);
    assert.deepEqual(await client.define('app', undefined, { queues: [changed] }), { made: [], changed: ['mails'], forgotten: ['imports'], unchanged: 0 });
    await assert.rejects(client.define('app', undefined, { queues: [{ name: '' }] }), Invalid);
    assert.deepEqual(client.queues('app'), [changed]);
  }
});

test('a job for a full queue is refused', async () => {
  await channel.assertExchange('jobs.direct', 'direct');
  await channel.assertQueue('jobs.full', { arguments: { 'x-max-length': 0, 'x-overflow': 'reject-publish' } });
  await channel.bindQueue('jobs.full', 'jobs.direct', 'imports');
  const client = new Client({ url: broker.url });
  await assert.rejects(client.enqueue('Import', [], { queue: 'imports' }), (error) => error instanceof Refused
    && error.message.endsWith('the queue is full or unavailable, try again later'));
  await channel.unbindQueue('jobs.full', 'jobs.direct', 'imports');
  await channel.assertQueue('jobs.gated');
  await channel.bindQueue('jobs.gated', 'jobs.direct', 'imports');
  assert.equal(await client.enqueue('Import', [], { queue: 'imports', jid: 'taken' }), 'taken');
  await client.close();
});
