// Enqueues jobs with the JavaScript client and with amqplib alone, for the benchmark of enqueueing.
import amqplib from 'amqplib';
import { Client } from 'millrace-jobs';

const url = process.env.MILLRACE_AMQP_URL;
const { queue, jobs, at_once: atOnce, rounds } = JSON.parse(process.env.MILLRACE_ENQUEUE);

/** @param {import('amqplib').ConfirmChannel} channel @param {number} number @param {(error: any) => void} [confirmed] */
const publish = (channel, number, confirmed) => {
  const now = Date.now() / 1000;
  const jid = number.toString(16).padStart(32, '0');
  const body = `{"jid":"${jid}","class":"Noop","args":[${number},"some text"],"queue":"${queue}","created_at":${now},"enqueued_at":${now},"retry":25}`;
  channel.publish('jobs.direct', queue, Buffer.from(body), {
    mandatory: true, persistent: true, contentType: 'application/json', messageId: jid, type: 'Noop', timestamp: Math.floor(now),
  }, confirmed);
};

/** @param {() => Promise<void>} work */
const timed = async (work) => {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
};

const connection = await amqplib.connect(url);
const channel = await connection.createConfirmChannel();
const client = new Client({ url });

const bare = async () => {
  for (let n = 0; n < jobs; n++) {
    await new Promise((resolve, reject) => publish(channel, n, (error) => (error ? reject(error) : resolve(undefined))));
  }
};
const bareBulk = async () => {
  for (let begin = 0; begin < jobs; begin += atOnce) {
    for (let n = begin; n < begin + atOnce; n++) publish(channel, n);
    await channel.waitForConfirms();
  }
};
const single = async () => {
  for (let n = 0; n < jobs; n++) await client.enqueue('Noop', [n, 'some text'], { queue });
};
const bulk = async () => {
  for (let begin = 0; begin < jobs; begin += atOnce) {
    await client.enqueueBulk(Array.from({ length: atOnce }, (_, i) => ({ class: 'Noop', args: [begin + i, 'some text'], options: { queue } })));
  }
};

for (let round = 0; round < rounds; round++) {
  const one = { bare: await timed(bare), library: await timed(single) };
  const many = { bare: await timed(bareBulk), library: await timed(bulk) };
  console.log(JSON.stringify({ single: one, bulk: many }));
}
await client.close();
await connection.close();
