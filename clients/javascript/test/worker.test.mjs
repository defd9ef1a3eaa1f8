import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { Discard, HandBack, Kill, RetryIn, Worker } from 'millrace';
import { Hand } from '../src/engine/hand.js';
import { Metrics } from '../src/engine/metrics.js';
import { Job } from '../src/job.js';
import { parseJob } from '../src/parse.js';
import { settings } from '../src/settings.js';
import { verdictOf } from '../src/verdict.js';

const url = 'amqp://guest:guest@127.0.0.1:1/';
const aJob = () => new Job(parseJob(Buffer.from('{"class":"A","retry_count":2}'), 'q'), new AbortController().signal);

test('settings: defaults, lanes, weights', () => {
  const { lanes, maxDeaths, stopTimeout, declare } = settings({ url });
  assert.deepEqual(lanes, [{ name: 'default', queues: ['default'], weights: undefined, concurrency: 5 }]);
  assert.deepEqual([maxDeaths, stopTimeout, declare], [3, 25, true]);
  const two = settings({ url, queues: { 'queue.a': 3, b: 1 }, concurrency: 2, lanes: [{ name: 'x', queues: ['c'] }] }).lanes;
  assert.deepEqual(two.map((l) => [l.name, l.queues, l.weights, l.concurrency]), [['default', ['a', 'b'], [3, 1], 2], ['x', ['c'], undefined, 5]]);
});

test('settings that are wrong are refused', () => {
  const bad = [
    {}, { url: 'http://x' }, { url, queues: [] }, { url, queues: ['a', 'a'] }, { url, queues: { a: 0 } }, { url, concurrency: 0 }, { url, quues: [] },
    { url, stopTimeout: -1 }, { url, heartbeat: 0 }, { url, queues: ['a\nb'] }, { url, tag: 'a:b' },
    { url, queues: ['a'], lanes: [{ name: 'default', queues: ['b'] }] },
  ];
  for (const options of bad) assert.throws(() => new Worker(/** @type {any} */ (options)), TypeError, JSON.stringify(options));
  assert.throws(() => new Worker({ url }).handle('A', undefined), TypeError);
  assert.throws(() => new Worker({ url }).on(/** @type {any} */ ('never'), () => {}), TypeError);
});

test('whatever a handler throws has a verdict', async () => {
  class Mine extends Error {}
  const verdict = async (error, retryIn) => {
    const { kind, errorClass, message, after } = await verdictOf(error, aJob(), retryIn);
    return [kind, errorClass, message, after];
  };
  assert.deepEqual(await verdict(new Mine('x')), ['fail', 'Mine', 'x', undefined]);
  assert.deepEqual(await verdict(new TypeError('x')), ['fail', 'TypeError', 'x', undefined]);
  assert.deepEqual(await verdict('text'), ['fail', 'NotAnError', "'text'", undefined]);
  assert.deepEqual(await verdict(undefined), ['fail', 'NotAnError', 'undefined', undefined]);
  assert.deepEqual(await verdict(Object.defineProperty(new Error('x'), 'message', { get: () => { throw new Error('y'); } })),
    ['fail', 'Unreadable', 'what was thrown cannot be read', undefined]);
  assert.deepEqual((await verdict(new Discard('no')))[0], 'discard');
  assert.deepEqual(await verdict(new Kill('no')), ['kill', 'Killed', 'no', undefined]);
  assert.deepEqual(await verdict(new Kill(new Mine('why'))), ['kill', 'Mine', 'why', undefined]);
  assert.deepEqual(await verdict(new RetryIn(3, new Mine('later'))), ['fail', 'Mine', 'later', 3]);
  assert.equal((await verdict(new RetryIn(NaN)))[3], undefined);
  assert.equal((await verdict(new HandBack()))[0], 'hand_back');
  assert.equal((await verdict(new Mine('x'), (n) => n + 5))[3], 7);
  assert.equal((await verdict(new Mine('x'), () => -1))[3], undefined);
  assert.equal((await verdict(new Mine('x'), () => { throw new Error('broken'); }))[3], undefined);
});

test('strict queues: the first that has something; of one queue the highest priority, then the oldest', () => {
  const hand = new Hand(['a', 'b'], undefined);
  const put = (q, name, priority, at) => hand.put(q, { name, priority, at });
  put(1, 'b1', 0, 1);
  put(0, 'a1', 0, 2);
  put(0, 'a2', 5, 3);
  put(0, 'a3', 0, 4);
  assert.equal(hand.oldest(0), 2);
  assert.deepEqual([1, 2, 3, 4].map(() => hand.take().name), ['a2', 'a1', 'a3', 'b1']);
  assert.equal(hand.count, 0);
  assert.equal(hand.oldest(0), undefined);
});

test('weighted queues are drawn by weight among those that have something', () => {
  const drawn = (random) => {
    const hand = new Hand(['a', 'b', 'c'], [3, 1, 4]);
    hand.put(0, { name: 'a', priority: 0, at: 0 });
    hand.put(1, { name: 'b', priority: 0, at: 0 });
    return hand.take(() => random).name;
  };
  assert.deepEqual([0, 0.74, 0.76, 0.999].map(drawn), ['a', 'a', 'b', 'b']);
  const hand = new Hand(['a'], undefined);
  hand.put(0, { priority: 0, at: 0 });
  assert.equal(hand.empty(0).length, 1);
  assert.equal(hand.count, 0);
});

test('metrics are sent in arrays of 500, wait for a connection, and are dropped and counted beyond 10,000', () => {
  const metrics = new Metrics('me');
  const job = parseJob(Buffer.from('{"class":"A","jid":"j","enqueued_at":1}'), 'q');
  for (let i = 0; i < 10_003; i++) metrics.add(job, { status: 'success' }, 3_000, 3_500);
  assert.equal(metrics.dropped, 3);
  const sent = [];
  let room = 2;
  const send = (stream, body) => {
    if (room-- === 0) throw new Error('gone');
    sent.push([stream, JSON.parse(body.toString())]);
  };
  metrics.attach(send);
  assert.equal(sent.length, 2);
  metrics.attach(send);
  assert.equal(sent.length, 20);
  assert.ok(sent.every(([stream, batch]) => stream === 'job_metrics' && batch.length === 500));
  assert.deepEqual(sent[0][1][0], {
    type: 'job_metric', timestamp: 3.5, job_class: 'A', queue: 'q', duration_ms: 500, status: 'success', worker_identity: 'me', jid: 'j', wait_ms: 2000,
    attempt: 1,
  });
});

test('a worker that was stopped before it ran ends, and one whose broker is away can be stopped', async () => {
  const logger = { info() {}, warn() {}, error() {} };
  const early = new Worker({ url, logger });
  early.stop();
  await early.run();
  const seen = [];
  const away = new Worker({ url, logger: { ...logger, warn: () => away.stop() } });
  away.on('quiet', () => seen.push('quiet')).on('shutdown', () => seen.push('shutdown'));
  await away.run();
  assert.deepEqual(seen, ['quiet', 'shutdown']);
  await assert.rejects(away.run(), /runs once/);
});

test('a worker runs whatever flags Node was started with', () => {
  const program = `import { Worker } from 'millrace';
    const worker = new Worker({ url: '${url}', logger: { info() {}, error() {}, warn: () => worker.stop() } });
    await worker.run();
    console.log('stopped');`;
  const cwd = new URL('..', import.meta.url);
  const { stdout, stderr } = spawnSync(process.execPath, ['--max-old-space-size=300', '--input-type=module', '-e', program], { cwd, encoding: 'utf8' });
  assert.equal(stdout, 'stopped\n', stderr);
  const file = spawnSync(process.execPath, ['--max-old-space-size=300', '--stack-size=900', 'test/programs/stops.mjs'], { cwd, encoding: 'utf8' });
  assert.equal(file.stdout, 'stopped\n', file.stderr);
});
