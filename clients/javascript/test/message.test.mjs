import assert from 'node:assert/strict';
import { test } from 'node:test';
import amqplib from 'amqplib';
import { Client, Invalid } from 'millrace-jobs';
import { Fake } from 'millrace-jobs/testing';
import { startBroker } from './support/broker.mjs';

/** Returns the record's message, and the job, of a message that is delayed. */
async function delayed(message, options = {}) {
  const fake = new Fake();
  await fake.publishIn(60, { exchange: 'orders', ...message }, options);
  const [job] = fake.jobs('millrace.Message');
  return { message: job.args[0], job };
}

test('a message that breaks a rule is refused, with the reason', async () => {
  const circle = {};
  circle.self = [circle];
  const headers = (value) => ({ properties: { headers: { a: value } } });
  /** @type {[object, RegExp][]} */
  const bad = [
    [{ exchange: undefined }, /exchange is no text/], [{ routingKey: 7 }, /routingKey is no text/], [{ routing_key: 'x' }, /a message has no routing_key/],
    [{ body: { id: 17 } }, /body is no string, Buffer or Uint8Array/], [{ body: null }, /body is no string/], [{ body: '\ud800' }, /not valid Unicode/],
    [{ properties: { userId: 'guest' } }, /there is no property userId/], [{ properties: { toString: 'x' } }, /there is no property toString/],
    [{ properties: { expiration: 60_000 } }, /expiration is no text of milliseconds/], [{ properties: { timestamp: 1_795_000_000 } }, /timestamp is no Date/],
    [{ properties: { timestamp: new Date(NaN) } }, /timestamp is no Date/], [{ properties: { deliveryMode: true } }, /deliveryMode is true, 1 to 2/],
    [{ properties: { headers: ['a'] } }, /headers are no object/], [headers(new Date()), /a header has a Date, which JSON does not have/],
    [headers([Buffer.from('a')]), /a header has a Buffer/], [headers(new Uint8Array(1)), /no binary data/], [headers(2 ** 53), /may not be exact/],
    [headers(2n ** 63n), /more than 64 bits/], [headers(NaN), /not finite/], [headers(circle), /nested too deep/], [headers({ ['x'.repeat(256)]: 1 }), /name of a header/],
  ];
  for (const [message, reason] of bad) {
    await assert.rejects(delayed(message), (e) => e instanceof Invalid && reason.test(e.message), String(reason));
  }
  await assert.rejects(delayed({}, { queue: 'low' }), /a message has no option queue/);
  await assert.rejects(delayed({}, { quue: 'low' }), /there is no option quue/);
  const client = new Client({ url: 'amqp://127.0.0.1:1' });
  await assert.rejects(client.publishAt(/** @type {any} */ (undefined), { exchange: 'orders' }), /at is no Date/);
  await assert.rejects(client.publishIn(NaN, { exchange: 'orders' }), /at is no Date/);
});

test('a message is the arg of a job with the options', async () => {
  const { message, job } = await delayed({
    body: Buffer.from('é'), properties: { appId: undefined, timestamp: new Date(1_577_836_800_900), headers: { low: -(2n ** 63n), list: [null, { b: 0.5 }], none: undefined } },
  }, { tags: ['web'], deadline: 3 });
  assert.deepEqual(message, {
    exchange: 'orders', routing_key: '', body: 'é', properties: { timestamp: 1_577_836_800, headers: { low: Number(-(2n ** 63n)), list: [null, { b: 0.5 }] } },
  });
  assert.match(job.raw.toString(), /"low":-9223372036854775808,/);
  assert.deepEqual([job.queue, JSON.parse(job.raw.toString()).tags], ['millrace.messages', ['web']]);
  assert.ok(job.at && job.at.getTime() > Date.now() + 30_000);
});

test('a delayed message is a scheduled job on the broker', async (t) => {
  const broker = await startBroker();
  t.after(() => broker.stop());
  const connection = await amqplib.connect(broker.url);
  const channel = await connection.createChannel();
  await channel.assertQueue('scheduled_jobs');
  const client = new Client({ url: broker.url });
  const properties = { headers: { tenant: 'a' } };
  const jid = await client.publishIn(60, { exchange: 'orders', routingKey: 'order.created', body: Buffer.from([255]), properties }, { tags: ['web'] });
  await client.close();
  const message = /** @type {amqplib.GetMessage} */ (await channel.get('scheduled_jobs', { noAck: true }));
  await connection.close();
  const record = JSON.parse(message.content.toString());
  assert.deepEqual([record.type, record.jid, message.properties.messageId], ['scheduled_job', jid, jid]);
  assert.ok(Math.abs(record.scheduled_at - Date.now() / 1000 - 60) < 30);
  const { class: name, queue, args, tags } = record.job;
  assert.deepEqual([name, queue, tags], ['millrace.Message', 'millrace.messages', ['web']]);
  assert.deepEqual(args, [{ exchange: 'orders', routing_key: 'order.created', body_base64: '/w==', properties }]);
});
