import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { BulkError, Cancelled, Discard, HandBack, Invalid, Kill, RetryIn, Timeout, Worker, defineJob } from 'millrace-jobs';
import { Attempt, Fake, Inline } from 'millrace-jobs/testing';

const aWorker = () => new Worker({ url: 'amqp://localhost', logger: false });
const fails = (job) => {
  throw new Error(`${job.args[0] ?? 'it'} failed`);
};

test('inline: enqueue runs the handler, with args that went through JSON, and throws its error', async () => {
  const seen = [];
  const worker = aWorker().handle('Greet', (job) => seen.push(job.args)).handle('Fail', fails).handle('Drop', () => {
    throw new Discard('not needed');
  });
  const client = new Inline(worker);
  await client.enqueue('Greet', ['Ann', new Date(0)]);
  await client.enqueueIn(60, 'Greet', ['Bob']);
  assert.deepEqual(seen, [['Ann', '1970-01-01T00:00:00.000Z'], ['Bob']]);
  await assert.rejects(client.enqueue('Fail'), /it failed/);
  await assert.rejects(client.enqueue('Unhandled'), /no handler for class Unhandled/);
  await assert.rejects(client.enqueue('Greet', /** @type {any} */ ([NaN])), Invalid);
  await assert.rejects(client.enqueueBulk([{ class: 'Greet' }, { class: 'Fail' }]), BulkError);
  assert.equal((await client.enqueue('Drop')).length, 32, 'a discard is a good end');
});

test('fake: enqueue collects, drain runs what is there and what that enqueues', async () => {
  const seen = [];
  const worker = aWorker();
  const client = new Fake(worker);
  worker.handle('First', async (job) => {
    seen.push(`first of ${job.queue}`);
    await client.enqueue('Second', [], { queue: 'low', traceparent: '00-1-2-01', fields: { tenant: 'acme' } });
  });
  worker.handle('Second', (job) => seen.push(`second of ${job.queue}, ${job.traceparent}, ${job.fields.tenant}`));
  const due = new Date(4_000_000_000_000);
  await client.enqueueAt(due, 'First', [1]);
  const [job] = client.jobs('First');
  assert.deepEqual([job.at, job.args, job.queue, job.attempt], [due, [1], 'default', 1]);
  assert.equal(client.jobs('Second').length, 0);
  assert.equal(await client.drain(), 2);
  assert.deepEqual(seen, ['first of default', 'second of low, 00-1-2-01, acme']);
  await client.enqueue('First');
  client.clear();
  assert.deepEqual(client.jobs(), []);
  const collects = new Fake();
  await collects.enqueue('First');
  await assert.rejects(collects.drain(), /drain needs a worker/);
  assert.throws(() => new Inline(/** @type {any} */ (undefined)), /Inline needs the worker/);
});

test('fake: all jobs run, discards end well, and no error is lost', async () => {
  const seen = [];
  const worker = aWorker().handle('Fail', fails).handle('Fine', (job) => seen.push(job.args[0])).handle('Drop', () => {
    throw new Discard();
  });
  const client = new Fake(worker);
  await client.enqueueBulk([{ class: 'Drop' }, { class: 'Fail', args: ['one'] }, { class: 'Fine', args: ['fine'] }]);
  await assert.rejects(client.drain(), { name: 'Error', message: 'one failed' });
  assert.deepEqual(seen, ['fine']);
  await client.enqueueBulk([{ class: 'Fail', args: ['one'] }, { class: 'Drop' }, { class: 'Fail', args: ['two'] }]);
  await assert.rejects(client.drain(), (error) => {
    assert.ok(error instanceof AggregateError);
    assert.deepEqual(error.errors.map((e) => e.message), ['one failed', 'two failed']);
    return /one failed.*two failed/.test(error.message);
  });
});

test('fake: a failed job waits for its retry, comes again with the next attempt, and dies in the end', async () => {
  const attempts = [];
  const hooks = [];
  const worker = aWorker();
  worker.on('failure', (job, error) => hooks.push(`failure ${job.attempt}: ${error.message}`)).on('death', (job) => hooks.push(`death ${job.attempt}`));
  worker.handle('Twice', (job) => {
    attempts.push(job.attempt);
    if (job.attempt <= 2) throw new RetryIn(7, new Error('not yet'));
  });
  worker.handle('Fail', fails);
  const client = new Fake(worker);
  await client.enqueue('Twice', [1], { retry: 2 });
  await assert.rejects(client.drain(), /not yet/);
  const [retry] = client.retries('Twice');
  assert.deepEqual([retry.attempt, retry.retryIn, retry.args, retry.error.message], [2, 7, [1], 'not yet']);
  assert.equal(await client.drain({ retries: true }), 2);
  assert.deepEqual(attempts, [1, 2, 3]);
  assert.deepEqual(hooks.splice(0), ['failure 1: not yet', 'failure 2: not yet']);

  await client.enqueue('Fail', ['it'], { retry: 1 });
  await assert.rejects(client.drain({ retries: true }), { message: 'it failed' });
  assert.deepEqual(hooks, ['failure 1: it failed', 'failure 2: it failed', 'death 2']);
  assert.deepEqual(client.dead('Fail').map((job) => [job.attempt, job.error.message]), [[2, 'it failed']]);
  assert.deepEqual(client.retries(), []);
});

test('fake: a running job can be cancelled', async () => {
  const worker = aWorker();
  const client = new Fake(worker);
  worker.handle('Wait', async (job) => {
    setImmediate(() => assert.equal(client.cancel(job.jid), true));
    await once(job.cancelled, 'abort');
    assert.ok(job.cancelled.reason instanceof Cancelled);
    throw job.cancelled.reason;
  });
  await client.enqueue('Wait');
  assert.equal(await client.drain(), 1);
  assert.deepEqual([client.retries(), client.dead(), client.cancel('none')], [[], [], false]);
});

test('an attempt ends as it would in a worker', async () => {
  const deaths = [];
  const worker = aWorker().on('death', (job, error) => deaths.push(error));
  worker.handle('Fine', (job) => job.attempt === 3 || fails(job));
  worker.handle('Fail', fails, { retryIn: (count) => 10 * (count + 1) });
  worker.handle('Kill', () => {
    throw new Kill(new RangeError('no use'));
  });
  worker.handle('Drop', () => {
    throw new Discard();
  });
  worker.handle('Wait', (job) => sleep(10_000, undefined, { signal: AbortSignal.any([job.cancelled, job.stopping]) }).catch(() => {
    throw new HandBack();
  }));
  const run = (job, attempt) => new Attempt(worker, job, { attempt }).run();
  assert.deepEqual(await run({ class: 'Fine' }, 3), { status: 'success', failed: false });
  const failed = await run({ class: 'Fail', args: ['x'] }, 2);
  assert.deepEqual([failed.status, failed.failed, failed.error.message, failed.retryIn], ['retry', true, 'x failed', 20]);
  assert.equal((await run({ class: 'Fail', options: { retry: 4 } }, 4)).status, 'retry');
  assert.equal((await run({ class: 'Fail', options: { retry: 4 } }, 5)).status, 'dead');
  assert.equal((await run({ class: 'Fail', options: { retry: 0, dead: false } })).status, 'discarded');
  const killed = await run({ class: 'Kill' });
  assert.deepEqual([killed.status, killed.error.name], ['dead', 'RangeError']);
  assert.deepEqual(deaths.map((error) => error.message), ['it failed', 'it failed', 'no use']);
  assert.deepEqual((({ status, failed }) => [status, failed])(await run({ class: 'Drop' })), ['discarded', false]);
  assert.equal((await run({ class: 'Fine', options: { expiresAt: new Date(1) } })).status, 'dead');
  assert.match((await run({ class: 'Unknown' })).error.message, /no handler for class Unknown/);

  const timedOut = await run({ class: 'Wait', options: { timeout: 0.05 } });
  assert.equal(timedOut.status, 'retry');
  assert.ok(timedOut.error instanceof Timeout && timedOut.error.cause instanceof HandBack, 'with the cause');
  assert.equal((await new Attempt(worker, { class: 'Wait' }).cancel().run()).status, 'discarded');
  const stopped = new Attempt(worker, { class: 'Wait' });
  const running = stopped.run();
  await sleep(10);
  assert.equal(stopped.job.stopping.aborted, false);
  stopped.stop();
  assert.deepEqual([(await running).status, (await running).failed], ['handed_back', false]);
  assert.throws(() => new Attempt(worker, { class: 'Fine' }, { attempt: 0 }), TypeError);
});

test('middleware wraps both sides, the first outermost', async () => {
  const seen = [];
  const worker = aWorker().handle('A', () => seen.push('handler'));
  const client = new Inline(worker);
  for (const n of [1, 2]) {
    client.use(async (job, next) => {
      seen.push(`client ${n} ${job.class}`);
      return next();
    });
    worker.use(async (job, next) => {
      seen.push(`worker ${n} ${job.jid.length}`);
      await next();
    });
  }
  await client.enqueue('A');
  assert.deepEqual(seen, ['client 1 A', 'client 2 A', 'worker 1 32', 'worker 2 32', 'handler']);
  const held = new Fake().use(() => 'not published');
  assert.equal(await held.enqueue('A'), '');
  assert.deepEqual(held.jobs(), []);
});

test('fake: enqueue resolves to the jid, independent of what middleware returns, and to an empty one if middleware caught the error', async () => {
  const client = new Fake();
  client.use(async (job, next) => {
    await next().catch(() => {});
  });
  const jids = [await client.enqueue('A'), ...(await client.enqueueBulk([{ class: 'A' }, { class: 'A' }]))];
  assert.deepEqual(jids, client.jobs().map((job) => job.jid));
  assert.equal(await client.enqueue('A', /** @type {any} */ ([NaN])), '');
});

test('a definition names its class, and its options hold where a job has none of its own', async () => {
  const mail = defineJob('Mail', { queue: 'mail', retry: 3, fields: { tenant: 'acme' } });
  const seen = [];
  const worker = aWorker().handle(mail, (job) => seen.push(job.args[0]));
  const client = new Fake(worker);
  client.use((job, next) => {
    job.options.tags = [job.class];
    return next();
  });
  await client.enqueue(mail, ['one']);
  await client.enqueueIn(60, mail, ['two'], { queue: 'low' });
  await client.enqueueBulk([{ class: mail, args: ['three'] }]);
  const written = client.jobs(mail).map(({ raw }) => JSON.parse(raw.toString()));
  assert.deepEqual(written.map((job) => [job.class, job.queue, job.retry, job.tenant, job.tags]), [
    ['Mail', 'mail', 3, 'acme', ['Mail']], ['Mail', 'low', 3, 'acme', ['Mail']], ['Mail', 'mail', 3, 'acme', ['Mail']],
  ]);
  assert.equal(await client.drain(), 3);
  assert.deepEqual(seen, ['one', 'two', 'three']);
  assert.equal(`${mail}`, 'Mail');
  for (const options of [{ jid: 'x' }, { quue: 'x' }, { deadline: 1 }]) assert.throws(() => defineJob('Mail', /** @type {any} */ (options)), Invalid);
  assert.throws(() => defineJob(''), Invalid);
});
