// pg-boss in `make bench-peers`.
'use strict';

const { PgBoss } = require('pg-boss');
const { work, handle, jobs, unique, run, ready } = require('./work.cjs');

const bulk = 1000;

// started returns pg-boss with a schema of its own for each row, and the row's queue.
async function started() {
  const boss = new PgBoss({ connectionString: work.postgres, schema: `row_${work.row}`, useListenNotify: true });
  boss.on('error', err => console.error(err.message));
  await boss.start();
  return boss;
}

run({
  async define() {
    const boss = await started();
    await boss.createQueue(work.row, { notify: true, heartbeatSeconds: 10, policy: work.row === 'unique' ? 'exclusive' : 'standard' });
    if (work.row !== 'periodic') return;
    for (let i = 0; i < work.jobs; i++) {
      await boss.schedule(work.row, '* * * * *', { id: i, key: i }, { key: `job-${i}` });
    }
  },

  async produce() {
    const boss = await started();
    const all = jobs().map(data => ({ data, group: work.limit ? { id: `key-${data.key}` } : undefined }));
    for (let n = 0; n < all.length; n += bulk) await boss.insert(work.row, all.slice(n, n + bulk));
  },

  async unique() {
    const boss = await started();
    await unique(async key => (await boss.send(work.row, { id: key, key }, { singletonKey: `key-${key}` })) !== null);
  },

  // A handler gets a batch. Ten jobs a batch, and a batch as soon as the last one was full, are the
  // fastest of what was tried.
  async worker() {
    const boss = await started();
    const batchSize = 10;
    await boss.work(work.row, {
      batchSize, localConcurrency: Math.ceil(work.slots / batchSize), burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5, groupConcurrency: work.limit || undefined,
    }, batch => Promise.all(batch.map(job => handle(job.data))));
    return ready();
  },
});
