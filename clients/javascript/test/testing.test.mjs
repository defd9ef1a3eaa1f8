import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Incomplete, Invalid } from 'millrace';
import { FakeClient, InlineClient } from 'millrace/testing';

test('inline: enqueue runs the handler, with args that went through JSON, and throws its error', async () => {
  const client = new InlineClient();
  const seen = [];
  client.handle('Greet', (job) => seen.push(job.args));
  client.handle('Fail', () => {
    throw new Error('told to');
  });
  await client.enqueue('Greet', ['Ann', new Date(0)]);
  await client.enqueueIn(60, 'Greet', ['Bob']);
  assert.deepEqual(seen, [['Ann', '1970-01-01T00:00:00.000Z'], ['Bob']]);
  await assert.rejects(client.enqueue('Fail'), /told to/);
  await assert.rejects(client.enqueue('Nobody'), /no handler for class Nobody/);
  await assert.rejects(client.enqueue('Greet', [NaN]), Invalid);
  await assert.rejects(client.enqueueBulk([{ class: 'Greet' }, { class: 'Fail' }]), Incomplete);
});

test('fake: enqueue collects, drain runs what is there and what that enqueues', async () => {
  const client = new FakeClient();
  const seen = [];
  client.handle('First', async (job) => {
    seen.push(`first of ${job.queue}`);
    await client.enqueue('Second', [], { queue: 'low', traceparent: '00-1-2-01' });
  });
  client.handle('Second', (job) => seen.push(`second of ${job.queue}, ${job.traceparent}`));
  const due = new Date(4_000_000_000_000);
  await client.enqueueAt(due, 'First', [1]);
  const [job] = client.jobs('First');
  assert.deepEqual([job.at, job.args, job.queue], [due, [1], 'default']);
  assert.equal(client.jobs('Second').length, 0);
  assert.equal(await client.drain(), 2);
  assert.deepEqual(seen, ['first of default', 'second of low, 00-1-2-01']);
  await client.enqueue('First');
  client.clear();
  assert.deepEqual(client.jobs(), []);
});

test('middleware wraps both sides, the first outermost', async () => {
  const client = new InlineClient();
  const seen = [];
  client.handle('A', () => seen.push('handler'));
  for (const n of [1, 2]) {
    client.use(async (job, next) => {
      seen.push(`client ${n} ${job.class}`);
      return next();
    });
    client.useWorker(async (job, next) => {
      seen.push(`worker ${n} ${job.jid.length}`);
      await next();
    });
  }
  await client.enqueue('A');
  assert.deepEqual(seen, ['client 1 A', 'client 2 A', 'worker 1 32', 'worker 2 32', 'handler']);
  const held = new FakeClient().use(() => null);
  assert.equal(await held.enqueue('A'), null);
  assert.deepEqual(held.jobs(), []);
});
