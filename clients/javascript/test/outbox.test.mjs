import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Outbox, ends, jobs } from '../dist/outbox.js';
import { parseJob } from '../dist/parse.js';

const job = parseJob(Buffer.from('{"class":"Mail","jid":"a","args":[1],"retry_count":2,"tags":["x"],"timeout":3,"backtrace":true}'), 'mails', {
  headers: { traceparent: '00' },
});

/** Returns an outbox, and its messages as the other thread gets them. */
function outbox() {
  const sent = [];
  return { sent, box: new Outbox((batch) => sent.push(structuredClone(batch))) };
}

test('jobs come as they were sent, before what else there is to say', async () => {
  const { sent, box } = outbox();
  box.run(1, job);
  box.post({ t: 'abort', id: 1 });
  box.run(2, job);
  await turn();
  assert.equal(sent.length, 1);
  const [first, second, abort] = /** @type {any[]} */ ([...jobs(sent[0])]);
  assert.deepEqual([first.t, first.id, second.id], ['run', 1, 2]);
  assert.deepEqual(abort, { t: 'abort', id: 1 });
  for (const [name, value] of Object.entries(first.job)) assert.deepEqual(value, job[name], name);
  assert.ok(['text', 'jid', 'class', 'queue', 'retryCount', 'priority', 'tags', 'headers', 'timeout', 'backtrace'].every((name) => name in first.job));
});

test('ends come as verdicts', async () => {
  const { sent, box } = outbox();
  box.ended(7, 1000, 1001);
  box.ended(8, 1002, 1003);
  await turn();
  assert.deepEqual([...ends(sent[0])], [
    { t: 'verdict', id: 7, verdict: { kind: 'success', begin: 1000, end: 1001 } },
    { t: 'verdict', id: 8, verdict: { kind: 'success', begin: 1002, end: 1003 } },
  ]);
});

test('nothing is sent twice, and nothing is sent where there is nothing', async () => {
  const { sent, box } = outbox();
  box.flush();
  box.post({ t: 'quiet' });
  box.flush();
  await turn();
  box.post({ t: 'stop' });
  await turn();
  assert.deepEqual(sent, [[[], [{ t: 'quiet' }]], [[], [{ t: 'stop' }]]]);
});
