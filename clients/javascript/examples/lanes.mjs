// Separate lanes for quick and slow jobs, weighted queues, a backoff of its own, and a job that
// notices its signal.
import { HandBack, Kill, Worker } from 'millrace-jobs';

const worker = new Worker({
  url: process.env.MILLRACE_AMQP_URL ?? 'amqp://localhost',
  lanes: [
    { name: 'quick', queues: { critical: 3, mail: 1 }, concurrency: 20 },
    { name: 'slow', queues: ['reports'], concurrency: 2 },
  ],
  tag: 'examples',
});

worker.handle('Mail', async (job) => {
  const response = await fetch(job.args[0], { signal: job.cancelled });
  if (response.status === 410) throw new Kill('the address is gone');
  if (!response.ok) throw new Error(`the server says ${response.status}`);
}, { retryIn: (count) => 10 * (count + 1), timeout: 30 });

worker.handle('Report', async (job) => {
  for (const part of job.args) {
    if (job.stopping.aborted) throw new HandBack();
    console.log('part', part);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
});

worker.use(async (job, next) => {
  console.log(`${job.class} ${job.jid} begins`);
  await next();
});
worker.on('death', (job, error) => console.error(`${job.jid} is given up:`, error));

await worker.run({ signals: true });
process.exit();
