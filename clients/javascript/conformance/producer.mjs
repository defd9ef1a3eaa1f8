// Tested by clients/conformance, whose README says what this program must do.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { BulkError, Client } from 'millrace-jobs';

const client = new Client({ url: process.env.MILLRACE_AMQP_URL });

for (const name of ['outer', 'inner']) {
  // Middleware that records its position.
  client.use((job, next) => {
    if (job.class === 'Swallowed') return null;
    if (job.class === 'Wrapped') job.args = [...(job.args ?? []), name];
    return next();
  });
}

/** @param {any} given */
const options = ({ expires_at: expires, limit_key: limitKey, ...others } = {}) => ({
  ...others, ...(limitKey && { limitKey }), ...(expires !== undefined && { expiresAt: new Date(expires * 1000) }),
});

const bulk = async ({ class: name, queue, prefix, count }) => {
  const jids = [];
  for (let begin = 0; begin < count; begin += 500) {
    const jobs = Array.from({ length: Math.min(500, count - begin) }, (_, i) => ({
      class: name, args: [`${prefix}${begin + i}`], options: queue === undefined ? {} : { queue },
    }));
    try {
      jids.push(...(await client.enqueueBulk(jobs)));
    } catch (error) {
      if (!(error instanceof BulkError)) throw error;
      console.error(error);
      jids.push(...error.results.map((r) => r.jid ?? null));
    }
  }
  return jids;
};

const carryOut = async (command) => {
  const { op, class: name, args, timeout } = command;
  const given = { ...options(command.options), ...(timeout && { deadline: timeout }) };
  if (op === 'bulk') return bulk(command);
  if (op === 'enqueue_at') return [await client.enqueueAt(new Date(command.at * 1000), name, args, given)];
  if (op === 'enqueue_in') return [await client.enqueueIn(command.in, name, args, given)];
  return [await client.enqueue(name, args, given)];
};

const define = ({ source, jobs, limits, queues, timeout }) => client.define(source, jobs?.map(({ queue, catch_up: catchUp, ...job }) => (
  { ...job, ...(catchUp && { catchUp }), options: queue ? { queue } : {} })), {
  deadline: timeout, limits, queues: queues?.map(({ max_waiting: maxWaiting, ...queue }) => ({ ...queue, maxWaiting })),
});

const enqueueUnique = async ({ class: name, args, at, options: given, timeout }) => {
  const stays = await client.enqueueUnique(name, args, { ...options(given), ...(at && { at: new Date(at * 1000) }), deadline: timeout });
  return { jids: [stays.jid], duplicate: stays.duplicate };
};

let line = 0;
for await (const text of createInterface({ input: process.stdin })) {
  line++;
  let result;
  try {
    const command = JSON.parse(text);
    if (command.op === 'define') result = await define(command);
    else if (command.op === 'enqueue_unique') result = await enqueueUnique(command);
    else result = { jids: await carryOut(command) };
  } catch (error) {
    result = { error: error.name, message: error.message };
  }
  appendFileSync(process.env.MILLRACE_RESULTS, `${JSON.stringify({ line, ...result })}\n`);
}
await client.close();
