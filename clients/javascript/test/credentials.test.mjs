// Credentials that the broker changes between two connections, and client certificates.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import amqplib from 'amqplib';
import { Client, Closed, Unreachable, Worker } from 'millrace-jobs';
import { Hosts } from '../dist/hosts.js';
import { startBroker } from './support/broker.mjs';
import { capture, eventually } from './support/observe.mjs';

/** @type {any} */
let broker;
before(async () => {
  broker = await startBroker();
});
after(() => broker?.stop());

/** Returns a queue, bound to get jobs, and makes the other queues of a worker. */
async function aQueue(name) {
  const connection = await amqplib.connect(broker.url);
  const channel = await connection.createChannel();
  await channel.assertExchange('jobs.direct', 'direct');
  for (const queue of ['heartbeats', 'job_metrics']) await channel.assertQueue(queue);
  await channel.assertQueue(`queue.${name}`, { maxPriority: 10 });
  await channel.bindQueue(`queue.${name}`, 'jobs.direct', name);
  await connection.close();
  return name;
}

test('credentials are asked for at each connection: the password changes, and the producer and the worker go on', async () => {
  const queue = await aQueue('rotating');
  const url = broker.url.replace('guest:guest@', 'of-the-url:unused@');
  let password = 'secret-one';
  let fault;
  const asked = { client: 0, worker: 0 };
  const give = (who) => {
    asked[who]++;
    if (fault) throw fault;
    return { username: 'rotating', password };
  };
  broker.ctl('add_user', 'rotating', password);
  broker.ctl('set_permissions', 'rotating', '.*', '.*', '.*');

  const { lines, logger } = capture();
  const seen = [];
  const worker = new Worker({ url, queues: [queue], logger, credentials: async () => give('worker') });
  worker.handle('Seen', (job) => seen.push(job.args[0]));
  const running = worker.run();
  const client = new Client({ url, credentials: () => give('client') });
  await client.enqueue('Seen', ['before'], { queue });
  await eventually('the job has run', () => seen.includes('before'));
  assert.deepEqual(asked, { client: 1, worker: 1 });

  // This error looks like the broker's refusal, but comes from the program.
  fault = new Error('the vault is sealed: HTTP 403');
  password = 'secret-two';
  broker.ctl('change_password', 'rotating', password);
  broker.ctl('close_all_user_connections', 'rotating', 'rotated');
  const failed = () => lines.filter((line) => line.text === 'no connection to the broker, trying again' && /the vault is sealed/.test(line.error));
  await eventually('the worker has asked twice in vain', () => failed().length >= 2);
  await eventually('the client has asked in vain', async () => {
    // This job may arrive: the client may not know yet that it has lost its connection.
    const error = await client.enqueue('Seen', ['perhaps'], { queue, deadline: 1 }).catch((e) => e);
    return error instanceof Unreachable && /the vault is sealed/.test(error.message);
  });
  await assert.rejects(client.enqueue('Seen', ['never'], { queue, deadline: 1 }), (e) => {
    assert.ok(e instanceof Unreachable);
    assert.match(e.message, /credentials: the vault is sealed: HTTP 403/);
    return e.cause instanceof Error && e.cause.cause === fault;
  });
  fault = undefined;
  await client.enqueue('Seen', ['after'], { queue });
  await eventually('the job of the new connections has run', () => seen.includes('after'));
  assert.ok(!seen.includes('never'));
  assert.ok(asked.client >= 3 && asked.worker >= 4, JSON.stringify(asked));

  worker.stop();
  await running;
  await client.close();
  assert.doesNotMatch(JSON.stringify(lines), /secret-/);
});

test('credentials that are no use: an error that says so', async () => {
  assert.throws(() => new Client(/** @type {any} */ ({ credentials: { username: 'a', password: 'b' } })), /credentials is no function/);
  assert.throws(() => new Worker(/** @type {any} */ ({ credentials: 'a:b' })), /credentials is no function/);
  const client = new Client(/** @type {any} */ ({ url: broker.url, timeout: 1, credentials: () => ({ username: 'guest' }) }));
  await assert.rejects(client.enqueue('A'), /the function must return \{ username, password \}, both strings/);
  await client.close();

  let n = 0;
  const early = new Client({ url: broker.url, credentials: () => {
    if (++n < 3) throw new Error('HTTP 403');
    return { username: 'guest', password: 'guest' };
  } });
  await early.enqueue('A', [], { queue: await aQueue('early') });
  assert.equal(n, 3, 'the first attempts failed, and the next ones asked again');
  await early.close();

  const credentials = () => ({ username: 'guest', password: 'wrong' });
  await assert.rejects(new Worker({ url: broker.url, logger: false, credentials }).run(), /the broker turns us away/);
  const refused = new Client({ url: broker.url, credentials });
  await assert.rejects(refused.enqueue('A'), /the broker turns us away/);
  await refused.close();
});

test('a function that hangs is not called again while it does', async (t) => {
  let calls = 0;
  let answer;
  const hosts = new Hosts([broker.url], undefined, () => {
    calls++;
    return new Promise((resolve) => {
      answer = resolve;
    });
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (let round = 0; round < 3; round++) {
    const failed = assert.rejects(hosts.dial('test'), /credentials: no answer in 30 s/);
    t.mock.timers.tick(30_000);
    await failed;
  }
  t.mock.timers.reset();
  const dialed = hosts.dial('test');
  answer({ username: 'guest', password: 'guest' });
  await (await dialed).close();
  assert.equal(calls, 1);
});

test('an enqueue that waits for credentials ends when its client is closed', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] }); // no time passes
  let called;
  const asked = new Promise((resolve) => {
    called = resolve;
  });
  const client = new Client({ url: broker.url, credentials: () => {
    called();
    return new Promise(() => {});
  } });
  const failed = assert.rejects(client.enqueue('A'), Closed);
  await asked;
  await client.close();
  await failed;
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
    const other = new Client({ url: broker.tlsUrl, timeout: 6, ...options });
    await assert.rejects(other.enqueue('Secret', [], { queue }), message);
    await other.close();
  };
  await Promise.all([
    refused({ tls: { cert, key } }, /self-signed certificate|unable to verify/),
    refused({ tls: { ca } }, Unreachable),
    refused({ tls: { ...tls, servername: 'other.example' } }, /does not match/),
  ]);
  assert.throws(() => new Client({ url: broker.url, tls }), /tls options need an amqps/);
  assert.throws(() => new Client({ url: broker.tlsUrl, tls: { cert: 'no PEM' } }), /millrace: tls: /);
});
