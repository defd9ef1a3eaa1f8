// Periodic jobs that a client defines, with a queue that stands for the leader's.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import amqplib from 'amqplib';
import { Client, Closed, Invalid, Refused, Unconfirmed, Unreachable, defineJob } from 'millrace-jobs';
import { Fake, Inline } from 'millrace-jobs/testing';
import { startBroker } from './support/broker.mjs';

let broker;
let connection;

before(async () => {
  broker = await startBroker();
  connection = await amqplib.connect(broker.url);
});
after(async () => {
  await connection?.close();
  await broker?.stop();
});

const nightly = {
  name: 'nightly', class: 'Report', args: ['daily', 2n ** 60n], cron: '0 3 * * *', tz: 'Europe/Stockholm', options: { queue: 'reports', retry: 2 }, jitter: 1.5,
  expiresIn: 3600, grace: 0, catchUp: /** @type {const} */ ('all'), catchUpMax: 7, overlap: /** @type {const} */ ('skip'), except: ['2026-12-24'], paused: true,
};

/**
 * Takes commands as a leader does, while a test runs. The replies are given in order; undefined is
 * no answer.
 */
async function leading(replies, act) {
  const commands = [];
  const channel = await connection.createChannel();
  await channel.assertQueue('jobs.leader');
  const { consumerTag } = await channel.consume('jobs.leader', ({ content, properties }) => {
    commands.push(content.toString());
    const reply = replies.shift();
    if (reply) channel.sendToQueue(properties.replyTo, Buffer.from(JSON.stringify(reply)), { correlationId: properties.correlationId });
  }, { noAck: true });
  const client = new Client({ url: broker.url });
  try {
    await act(client, commands);
  } finally {
    await client.close();
    await channel.cancel(consumerTag);
    await channel.deleteQueue('jobs.leader');
    await channel.close();
  }
}

test('periodic jobs are defined', async () => {
  const did = { made: ['nightly'], changed: [], forgotten: ['old'], unchanged: 1 };
  await leading([{ status: 200, defined: did }], async (client, commands) => {
    const poll = defineJob('Poll', { queue: 'polls' });
    assert.deepEqual(await client.define('billing', [nightly, { name: 'poll', class: poll, every: 90 }]), did);
    assert.match(commands[0], /1152921504606846976/);
    const { command, definitions } = JSON.parse(commands[0]);
    assert.equal(command, 'define');
    assert.deepEqual(definitions, { source: 'billing', periodic_jobs: [
      { name: 'nightly', job: { class: 'Report', args: ['daily', 2 ** 60], queue: 'reports', retry: 2 }, cron: '0 3 * * *', tz: 'Europe/Stockholm', jitter: 1.5,
        expires_in: 3600, grace: 0, catch_up: 'all', catch_up_max: 7, overlap: 'skip', except: ['2026-12-24'], paused: true },
      { name: 'poll', every: 90, job: { class: 'Poll', args: [], queue: 'polls' } },
    ] });
  });
});

test('define says why not', async () => {
  await leading([400, 409].map((status) => ({ status, reason: `why ${status}` })), async (client) => {
    await assert.rejects(client.define('a', [nightly]), (e) => e instanceof Invalid && /why 400/.test(e.message));
    await assert.rejects(client.define('a', [nightly]), (e) => e instanceof Refused && /why 409/.test(e.message));
    const wrong = [{ name: 'a', class: '' }, { name: 'a', class: 'A', options: { jid: 'j' } }, { name: 'a', class: 'A', crn: '@daily' }, { name: 'a', class: 'A', args: [undefined] }];
    for (const job of wrong) await assert.rejects(client.define('a', [/** @type {any} */ (job)]), Invalid);
    await client.close();
    await assert.rejects(client.define('a', []), Closed);
  });
});

test('a command without an answer is sent again with its id', async () => {
  await leading([undefined, { status: 503, reason: 'busy' }, { status: 204, repeated: true }], async (client, commands) => {
    assert.deepEqual((await client.define('a', [nightly])).made, []);
    assert.equal(commands.length, 3);
    assert.equal(new Set(commands.map((text) => JSON.parse(text).id)).size, 1);
  });
});

test('without a leader', async () => {
  const client = new Client({ url: broker.url });
  await assert.rejects(client.define('a', [nightly], { deadline: 1 }), (e) => e instanceof Refused && /no sidecar leads/.test(e.message));
  await client.close();
  await leading([], (busy) => assert.rejects(busy.define('a', [nightly], { deadline: 1 }), Unconfirmed));
  const nowhere = new Client({ url: 'amqp://127.0.0.1:1' });
  await assert.rejects(nowhere.define('a', [nightly], { deadline: 1 }), Unreachable);
  await nowhere.close();
});

test('test helpers keep periodic jobs', async () => {
  for (const fake of [new Fake(), new Inline(/** @type {any} */ ({}))]) {
    const [a, b] = [{ name: 'a', class: 'A', every: 60 }, { name: 'b', class: 'B', cron: '@daily' }];
    assert.deepEqual((await fake.define('app', [a, b])).made, ['a', 'b']);
    assert.deepEqual(fake.periodic('app'), [a, b]);
    const changed = { ...a, paused: true };
    assert.deepEqual(await fake.define('app', [changed]), { made: [], changed: ['a'], forgotten: ['b'], unchanged: 0 });
    await assert.rejects(fake.define('app', [{ name: 'c', class: '' }]), Invalid);
    assert.deepEqual(fake.periodic('app'), [changed]);
    assert.deepEqual(fake.periodic('other'), []);
  }
});
