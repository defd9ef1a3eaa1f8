// BullMQ in `make bench-peers`. Limits per key are of its paid groups; here each key has a queue of
// its own, with a global concurrency.
'use strict';

const { Queue, Worker } = require('bullmq');
const { default: IORedis } = require('ioredis');
const { work, handle, jobs, unique, run, ready } = require('./work.cjs');

const connection = new IORedis(work.redis, { maxRetriesPerRequest: null });
const perKey = work.limit > 0;
const bulk = 1000;
const options = { removeOnComplete: true };

function queues() {
  const names = perKey ? Array.from({ length: work.keys }, (_, key) => `${work.row}-${key}`) : [work.row];
  return names.map(name => new Queue(name, { connection }));
}

run({
  async define() {
    for (const queue of queues()) {
      if (perKey) await queue.setGlobalConcurrency(work.limit);
    }
    if (work.row !== 'periodic') return;
    const [queue] = queues();
    for (let i = 0; i < work.jobs; i++) {
      await queue.upsertJobScheduler(`job-${i}`, { pattern: '* * * * *' }, { name: 'job', data: { id: i, key: i }, opts: options });
    }
  },

  async produce() {
    const all = queues();
    const each = all.map(() => []);
    for (const data of jobs()) each[perKey ? data.key : 0].push({ name: 'job', data, opts: options });
    for (const [i, queue] of all.entries()) {
      for (let n = 0; n < each[i].length; n += bulk) await queue.addBulk(each[i].slice(n, n + bulk));
    }
  },

  async unique() {
    const [queue] = queues();
    const seen = new Set(); // a duplicate gets the id of the job that stays
    await queue.waitUntilReady();
    await unique(async (key, i) => {
      const job = await queue.add('job', { id: key, key }, { ...options, deduplication: { id: `key-${key}`, ttl: 600_000 } });
      return !seen.has(job.id) && seen.add(job.id) && true;
    });
  },

  async worker() {
    const limiter = work.rate ? { max: work.rate, duration: 1000 } : undefined;
    const concurrency = perKey ? work.limit : work.slots;
    const workers = queues().map(queue => new Worker(queue.name, job => handle(job.data), { connection, concurrency, limiter }));
    for (const worker of workers) worker.on('error', err => console.error(err.message));
    await Promise.all(workers.map(worker => worker.waitUntilReady()));
    return ready();
  },
});
