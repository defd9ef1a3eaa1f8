// Tested by clients/conformance, whose README says what this program must do.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Discard, HandBack, Kill, Worker } from 'millrace-jobs';

const given = JSON.parse(process.env.MILLRACE_WORKER);
const file = openSync(process.env.MILLRACE_EFFECTS, 'a');

const write = (what, text, jid, attempt) => writeSync(file, `${what}\t${text}\t${jid}\t${attempt}\t${(Date.now() / 1000).toFixed(6)}\n`);
const effect = (what, job, text = job.args[0]) => write(what, text, job.jid, job.attempt);

const worker = new Worker({
  url: process.env.MILLRACE_AMQP_URL, queues: given.queues, concurrency: given.concurrency, lanes: given.lanes, tag: given.tag,
  stopTimeout: given.stop_timeout, maxDeaths: given.max_deaths,
});
for (const hook of /** @type {const} */ (['startup', 'quiet', 'shutdown'])) worker.on(hook, () => write(hook, '-', '-', 0));
worker.on('death', (job) => effect('death', job, '-'));

/** Handles a class whose jobs write a line and then end with this function. */
const simple = (name, end, options) => worker.handle(name, (job) => {
  effect('ran', job);
  end(...job.args, job);
}, options);

const fail = (text) => {
  throw new Error(`failed on purpose: ${text}`);
};
const overflow = () => 1 + overflow();

for (const name of ['outer', 'inner']) {
  // Middleware that records its position.
  worker.use(async (job, next) => {
    if (job.class !== 'Wrapped') return next();
    effect(name, job);
    if (name === 'inner' && job.args[0] === 'fail') fail('fail');
    await next();
    effect(`${name}-end`, job);
  });
}

simple('Append', () => {});
simple('Wrapped', () => {});
simple('Fail', fail);
simple('FailSoon', (text, times, job) => job.attempt <= times && fail(text), { retryIn: () => 0.2 });
simple('Fatal', overflow);
simple('Discard', () => {
  throw new Discard('on purpose');
});
simple('Kill', (text) => {
  throw new Kill(`killed on purpose: ${text}`);
});
worker.handle('Sleep', async (job) => {
  effect('began', job);
  await sleep(job.args[1] * 1000);
  effect('ran', job);
});
worker.handle('Wait', async (job) => {
  effect('began', job);
  try {
    await sleep(job.args[1] * 1000, undefined, { signal: AbortSignal.any([job.stopping, job.cancelled]) });
  } catch {
    effect('stopped', job);
    throw new HandBack();
  }
  effect('ran', job);
});
worker.handle('Die', (job) => {
  effect('began', job);
  process.kill(process.pid, 'SIGKILL');
});
worker.handle('Args', (job) => effect('args', job, `[${job.rawArgs.slice(1).join(',')}]`));
worker.handle('Trace', (job) => effect('trace', job, job.traceparent ?? 'none'));
worker.handle('Noop', () => {});

await worker.run({ signals: true });
process.exit(); // even if a handler still runs
