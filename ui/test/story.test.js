// The timeline of a job, in order, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storyOf } from '../static/core/story.js';

const factsOf = (d) => storyOf({ events: [], runs: [], entries: [], ...d }).map((f) => f.text);
const event = (record, what, more = {}) => ({ record, at: record, what, set: 'dead-jobs', offset: 1, ...more });

test('a dead job that was deleted and restored is dead since it died', () => {
  const d = { entries: [{ millrace: { set: 'dead-jobs', at: 3 }, job: { retry: 1 } }], events: [event(9, 'undone'), event(8, 'deleted')],
    runs: [{ at: 2, status: 'failed', attempt: 1 }, { at: 2.5, status: 'dead', attempt: 2 }] };
  assert.deepEqual(factsOf(d), ['Attempt 1 failed', 'Attempt 2 of 2 failed: no retries left', 'Dead', 'Deleted', 'Restored to dead jobs']);
  assert.equal(factsOf({ runs: d.runs })[1], 'Attempt 2 failed: no retries left', 'how many attempts the job has is not known');
});

test('each undo takes back what was done last', () => {
  const facts = storyOf({ events: [event(4, 'changed'), event(5, 'deleted'), event(6, 'undone'), event(7, 'undone'), event(8, 'changed', { changes: [{ member: 'args' }, { member: 'queue' }] })] });
  assert.deepEqual(facts.map((f) => f.text), ['Changed', 'Deleted', 'Restored to dead jobs', 'Change undone', 'Changed arguments, queue']);
  assert.deepEqual(facts.map((f) => f.undo), [false, false, false, false, true]);
});

test('what waits or runs comes last, when it was made first', () => {
  assert.deepEqual(factsOf({ entries: [{ job: { enqueued_at: 1 }, millrace: { set: 'retries', at: 2, attempt: 3 } }],
    runs: [{ at: 5, status: 'failed', attempt: 0 }] }), ['Created', 'An attempt failed', 'Waits for attempt 4']);
  assert.deepEqual(factsOf({ events: [event(5, 'retried')], running: [{ identity: 'w', started_at: 4 }], job: { created_at: 3 } }), ['Created', 'Enqueued for another attempt', 'Running']);
  assert.deepEqual(factsOf({ leases: [{ attempt: 2, until: 9 }], events: [event(5, 'odd')] }), ['odd', 'Lease of attempt 2 ends']);
});

test('a job is enqueued before it is sent, whichever the journal has first', () => {
  for (const [enqueued, fired] of [[5.0004, 5], [5, 5.2]]) {
    assert.deepEqual(factsOf({ events: [event(2, 'enqueued', { at: enqueued }), event(1, 'fired', { at: fired })] }), ['Enqueued', 'Enqueued on schedule']);
  }
});
