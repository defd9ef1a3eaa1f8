// Finds, reschedules, retries and deletes jobs. The arguments are a sidecar's URL, the password for
// it, a jid, and the tag of 503 jobs.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, Inspector, NotFound, Unreachable } from 'millrace-jobs';

const [url, password, odd, tag] = process.argv.slice(2);
const inspector = new Inspector({ url });
const due = new Date(4_000_000_000_000);
const later = new Date(4_100_000_000_000);

async function eventually(holds) {
  const deadline = Date.now() + 30_000;
  while (!await holds()) {
    assert.ok(Date.now() < deadline);
    await pause(100);
  }
}

async function dueTime(jid) {
  try {
    return (await inspector.find(jid)).entries[0]?.at.getTime();
  } catch (error) {
    assert.ok(error instanceof NotFound, String(error));
    return undefined;
  }
}

const [{ record, ...entry }] = (await inspector.find('later')).entries;
assert.deepEqual(entry, { jid: 'later', set: 'scheduled-jobs', at: due, class: 'SendEmail', queue: 'mails', attempt: 0 });
assert.deepEqual(record.job.args, ['ann@example.com']);
const sets = {};
const jids = new Set();
for await (const found of inspector.findByTag(tag)) {
  assert.ok(found.record.job.tags.includes(tag));
  sets[found.set] = (sets[found.set] ?? 0) + 1;
  jids.add(found.jid);
}
assert.deepEqual(sets, { 'scheduled-jobs': 501, retries: 1, 'dead-jobs': 1 });
assert.equal(jids.size, 503);
for await (const found of inspector.findByTag('x')) {
  assert.equal(found.queue, 'tagged');
  break;
}
assert.equal((await inspector.findByTag('no such tag').next()).done, true);
for (const jid of ['later', 'failed']) {
  await inspector.reschedule(jid, later);
  await eventually(async () => await dueTime(jid) === later.getTime());
}
await assert.rejects(inspector.reschedule('dead', later), NotFound);
await assert.rejects(inspector.reschedule('later', new Date(NaN)), TypeError);

for (const jid of ['failed', 'dead']) await inspector.retry(jid);
await eventually(async () => {
  const { ready, scheduled, retries, dead } = await inspector.queue('mails');
  return String([ready, scheduled, retries, dead]) === '2,2,0,0';
});
assert.deepEqual((await inspector.queues()).map(({ name }) => name), ['mails']);
await assert.rejects(inspector.retry('later'), NotFound);

for (const jid of ['later', odd]) {
  await inspector.delete(jid);
  await eventually(async () => await dueTime(jid) === undefined);
  await assert.rejects(inspector.delete(jid), NotFound);
}
await inspector.cancel('runs');
await assert.rejects(inspector.cancel('failed'), NotFound);
await assert.rejects(inspector.find("unknown's"), NotFound);
await assert.rejects(inspector.queue('no/such queue'), NotFound);

const stranger = new Inspector({ url: url.replace(password, 'wrong') });
await assert.rejects(stranger.delete('later'), (error) => error instanceof ApiError && error.status === 401 && error.code === 'not_authorised');
await assert.rejects(new Inspector({ url: 'http://127.0.0.1:1' }).delete('later'), Unreachable);
assert.throws(() => new Inspector({ url: '127.0.0.1:15680' }), /http:\/\/user:password@host:port/);
assert.throws(() => new Inspector(/** @type {any} */ ({ uri: url })), /there is no option uri/);
console.log('inspected');
