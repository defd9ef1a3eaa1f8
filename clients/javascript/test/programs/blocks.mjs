// A handler blocks its thread for longer than the broker waits for a heartbeat. The job runs once,
// and is acknowledged. Run by internal/readmetest, with a broker at MILLRACE_AMQP_URL.
import assert from 'node:assert/strict';
import { Client, Worker } from 'millrace-jobs';

const url = `${process.env.MILLRACE_AMQP_URL}?heartbeat=1`;
const logged = [];
const log = (text) => logged.push(text);
const worker = new Worker({ url, queues: ['blocks'], logger: { info() {}, warn: log, error: log } });

let began = 0;
worker.handle('Block', () => {
  began++;
  const end = Date.now() + 6_000;
  while (Date.now() < end);
});
worker.handle('Stop', () => worker.stop());

const client = new Client({ url: process.env.MILLRACE_AMQP_URL });
await client.enqueue('Block', [], { queue: 'blocks' });
worker.on('startup', async () => {
  await client.enqueue('Stop', [], { queue: 'blocks' });
  await client.close();
});
await worker.run();

assert.equal(began, 1, 'the job came again');
assert.deepEqual(logged, [], 'nothing was lost');
console.log('ran once');
