// Declares the topology of section 2.3 of the specification, and the given queues:
// declare.js queue.x ...
const amqp = require('amqplib');

async function declare(queues) {
  const connection = await amqp.connect(process.env.AMQP_URL);
  const channel = await connection.createChannel();
  await channel.assertExchange('jobs.direct', 'direct', { durable: true });
  await channel.assertExchange('jobs.dead', 'fanout', { durable: true });
  for (const queue of queues) {
    await channel.assertQueue(queue, { durable: true, maxPriority: 10 });
  }
  for (const stream of ['scheduled_jobs', 'retries', 'dead_jobs', 'heartbeats', 'job_metrics']) {
    await channel.assertQueue(stream, { durable: true, arguments: { 'x-queue-type': 'stream' } });
  }
  await connection.close();
  console.log('declared');
}

declare(process.argv.slice(2));
