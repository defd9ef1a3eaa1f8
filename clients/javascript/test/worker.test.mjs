import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { Discard, HandBack, Kill, RetryIn, Worker, defineJob } from 'millrace-jobs';
import { Hand } from '../dist/engine/hand.js';
import { Metrics } from '../dist/engine/metrics.js';
import { Timeout } from '../dist/errors.js';
import { Job } from '../dist/job.js';
import { formatted } from '../dist/log.js';
import { parseJob } from '../dist/parse.js';
import { settings } from '../dist/settings.js';
import { stackOf, verdictOf } from '../dist/verdict.js';
import { VERSION } from '../dist/version.js';

const url = 'amqp://guest:guest@127.0.0.1:1/';
/** @returns {any} */
const aJob = () => new Job(parseJob(Buffer.from('{"class":"A","retry_count":2}'), 'q'), new AbortController().signal);

/** @returns {Promise<any>} */
const verdictFor = async (error, job = aJob(), retryIn = undefined, report = undefined) => (await verdictOf(error, job, retryIn, report)).verdict;

test('settings: defaults, lanes, weights', () => {
  const { lanes, maxDeaths, stopTimeout, declare } = settings({ url });
  assert.deepEqual(lanes, [{ name: 'default', queues: ['default'], weights: undefined, concurrency: 5 }]);
  assert.deepEqual([maxDeaths, stopTimeout, declare], [3, 25, true]);
  const two = settings({ url, queues: { 'queue.a': 3, b: 1 }, concurrency: 2, lanes: [{ name: 'x', queues: ['c'] }] }).lanes;
  assert.deepEqual(two.map((l) => [l.name, l.queues, l.weights, l.concurrency]), [['default', ['a', 'b'], [3, 1], 2], ['x', ['c'], undefined, 5]]);
});

test('settings that are wrong are refused', () => {
  const bad = [
    { url: undefined }, { url: 'http://x' }, { url, queues: [] }, { url, queues: ['a', 'a'] }, { url, queues: { a: 0 } }, { url, concurrency: 0 }, { url, quues: [] },
    { url, stopTimeout: -1 }, { url, tls: {} }, { url: 'amqps://localhost', tls: { certt: 'x' } }, { url: 'amqps://localhost', tls: { ca: 'x', cert: 'no PEM' } }, { url, heartbeat: 0 }, { url, queues: ['a\nb'] }, { url, tag: 'a:b' },
    { url, queues: ['a'], lanes: [{ name: 'default', queues: ['b'] }] },
  ];
  for (const options of bad) assert.throws(() => new Worker(/** @type {any} */ (options)), TypeError, JSON.stringify(options));
  assert.throws(() => new Worker({ url }).handle('A', undefined), TypeError);
  assert.throws(() => new Worker({ url }).on(/** @type {any} */ ('never'), () => {}), TypeError);
});

test('every value that a handler throws has a verdict', async () => {
  class Mine extends Error {}
  const verdict = async (error, retryIn) => {
    const { kind, errorClass, message, after } = await verdictFor(error, aJob(), retryIn);
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
  assert.equal((await verdict(new RetryIn(1e12)))[3], undefined, 'milliseconds since 1970');
  assert.equal((await verdict(new HandBack()))[0], 'hand_back');
  assert.equal((await verdict(new Mine('x'), (n) => n + 5))[3], 7);
  assert.equal((await verdict(new Mine('x'), () => -1))[3], undefined);
  assert.equal((await verdict(new Mine('x'), () => { throw new Error('broken'); }))[3], undefined);
});

test('the verdict shows hooks the error that the record shows', async () => {
  class Mine extends Error {}
  const mine = new Mine('why');
  /** @returns {Promise<any>} */
  const shown = async (error, job = aJob()) => (await verdictOf(error, job)).shown;
  assert.equal(await shown(mine), mine);
  assert.equal(await shown(new Kill(mine)), mine);
  assert.equal(await shown(new RetryIn(1, mine)), mine);
  assert.ok((await shown(new Kill('x'))) instanceof Kill);
  const timed = aJob();
  timed.cancel(new Timeout(2));
  const timeout = await shown(mine, timed);
  assert.deepEqual([timeout.name, timeout.message, timeout.cause], ['Timeout', 'ran longer than 2 s', mine]);
  assert.equal(await shown(timed.cause, timed), timed.cause);
  const foreign = runInNewContext('new RangeError("of another realm")');
  assert.deepEqual((({ errorClass, message }) => [errorClass, message])(await verdictFor(foreign)), ['RangeError', 'of another realm']);
});

test('a retryIn that fails or returns no seconds is reported', async () => {
  const reports = [];
  const report = (fault) => reports.push(fault.message);
  const after = async (retryIn) => (await verdictFor(new Error('x'), aJob(), retryIn, report)).after;
  const boom = () => {
    throw new Error('broken');
  };
  assert.deepEqual([await after(boom), await after(() => 'soon'), await after(async () => NaN), await after(() => 1e12)], new Array(4).fill(undefined));
  assert.deepEqual([await after(() => undefined), await after(() => null), await after(() => 0), await after(() => 3)], [undefined, undefined, undefined, 3]);
  assert.deepEqual(reports, ['broken', "retryIn returned 'soon', not seconds", 'retryIn returned NaN, not seconds', 'retryIn returned 1000000000000, not seconds']);
});

test('a class has one handler, and all of a worker is registered before it runs', async () => {
  const worker = new Worker({ url, logger: false }).handle('A', () => {});
  assert.throws(() => worker.handle('A', () => {}), /class A has a handler already/);
  assert.throws(() => worker.handle(defineJob('A'), () => {}), /class A has a handler already/);
  worker.stop();
  await worker.run();
  assert.throws(() => worker.handle('B', () => {}), /the handler of B comes too late: register it before run\(\)/);
  assert.throws(() => worker.use(() => {}), /comes too late/);
  assert.throws(() => worker.on('death', () => {}), /comes too late/);
});

test('a worker logs its start and its end once, on the console by default, and nothing with logger: false', async (t) => {
  const lines = [];
  for (const level of /** @type {const} */ (['info', 'warn', 'error'])) t.mock.method(console, level, (text) => lines.push(`${level} ${text}`));
  const run = async (logger) => {
    const worker = new Worker({ url, queues: ['a', 'b'], lanes: [{ name: 'x', queues: ['c'], concurrency: 2 }], tag: 't', logger });
    worker.stop();
    await worker.run();
    return lines.splice(0);
  };
  const identity = `[^ ]+:${process.pid}:t`;
  const [started, stopped, ...others] = await run();
  assert.match(started, new RegExp(`^info millrace: worker started  version=${VERSION} identity=${identity} queues=a,b,c concurrency=7$`));
  assert.match(stopped, new RegExp(`^info millrace: worker stopped  identity=${identity}$`));
  assert.deepEqual(others, []);
  assert.deepEqual(await run(false), []);
  assert.deepEqual(await run({ info: boom, warn: boom, error: boom }), [], 'a logger that throws changes nothing');
  assert.throws(() => new Worker({ url, logger: /** @type {any} */ ({ log() {} }) }), /the logger needs the functions info, warn and error/);

  function boom() {
    throw new Error('full disk');
  }
});

test('log lines: a value that would be taken for several is quoted, the stack stands below', () => {
  assert.equal(formatted('job failed', { class: 'A', tags: ['a', 'b'], message: 'no "such" file', empty: '', none: undefined, stack: '    at x' }),
    'job failed  class=A tags=a,b message="no \\"such\\" file"\n    at x');
  assert.equal(formatted('worker stopped'), 'worker stopped');
  const error = new Error('outer', { cause: new TypeError('inner') });
  assert.match(stackOf(error), /^ {4}at .*\n {2}caused by TypeError: inner\n {4}at /s);
});

test('strict queues: the first that has something; of one queue the highest priority, then the oldest', () => {
  /** @type {Hand<any>} */
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
    /** @type {Hand<any>} */
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

test('a worker runs with any flags of Node', () => {
  const program = `import { Worker } from 'millrace-jobs';
    const worker = new Worker({ url: '${url}', logger: { info() {}, error() {}, warn: () => worker.stop() } });
    await worker.run();
    console.log('stopped');`;
  const cwd = new URL('..', import.meta.url);
  const { stdout, stderr } = spawnSync(process.execPath, ['--max-old-space-size=300', '--input-type=module', '-e', program], { cwd, encoding: 'utf8' });
  assert.equal(stdout, 'stopped\n', stderr);
  const file = spawnSync(process.execPath, ['--max-old-space-size=300', '--stack-size=900', 'test/programs/stops.mjs'], { cwd, encoding: 'utf8' });
  assert.equal(file.stdout, 'stopped\n', file.stderr);
});
