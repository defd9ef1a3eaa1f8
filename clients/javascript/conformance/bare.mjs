// The loop to which the JavaScript client is compared: amqplib alone.
import amqplib from 'amqplib';

const { queues, concurrency } = JSON.parse(process.env.MILLRACE_WORKER);
const connection = await amqplib.connect(process.env.MILLRACE_AMQP_URL);
const channel = await connection.createChannel();
await channel.prefetch(concurrency);
await channel.consume(`queue.${queues[0]}`, (message) => {
  if (message !== null) channel.ack(message);
});
process.on('SIGTERM', () => connection.close());
