// Keys of unique jobs: the list, freeing one, and what the page of a job says of its key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';

/** Enqueues a unique job, and returns what was decided. @param {any} world @param {string} jid @param {any} unique @param {any} [more] */
const enqueue = (world, jid, unique, more) => http(`${world.base}/api/jobs`, 'POST', { jid, class: 'Reindex', queue: 'later', args: [42], at: Date.now() / 1000 + 9000, gate: { unique }, ...more });
/** @param {any} world @param {string} key */
const holds = (world, key) => http(`${world.base}/api/unique-keys?key=${key}`);

/** Shows the list, filtered. @param {any} me @param {string} text */
async function list(me, text) {
  await me.go('Unique keys');
  await me.find('searchbox', 'Filter unique keys').fill(text);
  return me.find('table', 'Unique keys');
}

export function uniqueKeys(world) {
  story(world, 'who has a key, and why a job with the same key did not run', async (me) => {
    assert.deepEqual(await enqueue(world, 'first', { key: 'same' }), { jid: 'first' });
    assert.deepEqual(await enqueue(world, 'second', { key: 'same' }), { jid: 'first', duplicate_of: 'first' });
    const table = await list(me, 'same');
    await table.find('row', /^same/).reads(/^same waiting first .* ago it is delivered or ends$/);
    assert.ok(await table.find('button', 'Free key: same').disabled(), 'a job has it');
    await table.find('link', 'first').click();
    await me.find('region', 'Unique key').reads(/Key same State waiting since .* until it is delivered or ends/);
    await me.find('region', 'Why it waits').seen();
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('second');
    await me.find('option', /open the job/).click();
    await me.find('main').reads(/Not run: a duplicate of first, which has its key\./);
    await me.find('region', 'Timeline').reads(/Rejected as a duplicate .* first has its key/);
    await me.find('main').find('link', 'first').first().click();
    await me.find('heading', /first/, { level: 1 }).seen();
  });

  story(world, 'a job that was replaced says by which', async (me) => {
    await enqueue(world, 'older', { key: 'news', on: 'replace' });
    await enqueue(world, 'newer', { key: 'news', on: 'replace' });
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('older');
    await me.find('option', /open the job/).click();
    await me.find('main').reads(/Not run: replaced by newer, which has its key now\./);
    await me.find('region', 'Timeline').reads(/Replaced by a newer job/);
    await me.find('main').find('link', 'newer').first().click();
    await me.find('region', 'Unique key').find('link', 'Unique keys').click();
    await me.find('table', 'Unique keys').find('row', /^news/).reads(/newer/);
  });

  story(world, 'a key that is taken for a time is freed after a question, and the audit log has it', async (me) => {
    await http(`${world.base}/api/job-queues/daily`, 'PUT');
    const sent = await enqueue(world, 'once-a-day', { key: 'daily-42', for: 86400 }, { at: undefined, queue: 'daily' });
    assert.deepEqual(sent, { jid: 'once-a-day' });
    const [lease] = await http(`${world.base}/api/job-queues/daily/lease`, 'POST', { wait_ms: 20_000 });
    await http(`${world.base}/api/leases/${lease.id}/ack`, 'POST');
    await until('the job has ended', async () => (await holds(world, 'daily-42')).map((/** @type {any} */ k) => k.state).join() === 'period');
    const table = await list(me, 'once-a-day');
    const row = table.find('row', /^daily-42/);
    await row.reads(/^daily-42 for a time once-a-day .* ago in /);
    await row.find('button', 'Free key: daily-42').click();
    await me.dialog.find('button', 'Cancel').focused();
    await me.dialog.reads(/The next job with this key runs.*can't be undone.*daily-42.*once-a-day/);
    await me.dialog.find('textbox', /^Reason/).fill('paid twice');
    await me.dialog.find('button', 'Free key').click();
    await me.notes.reads(/daily-42: key freed/);
    await me.find('main').reads(/No matches in/);
    assert.deepEqual(await holds(world, 'daily-42'), []);
  });

  story(world, 'who may only read sees keys and can free none', async (me) => {
    await enqueue(world, 'to-read', { key: 'seen' });
    await me.press('g');
    await me.press('k');
    await me.find('heading', /^Unique keys/, { level: 1 }).seen();
    await me.find('table', 'Unique keys').find('row', /^seen/).reads(/to-read/);
    assert.equal(await me.find('table', 'Unique keys').find('button', /Free/).count(), 0);
  }, { as: ['watcher', 'watches'] });

  test('beyond what is listed, a whole key, a job ID or a hash is found', async () => {
    const { page, context } = await open(world.browser);
    const asked = [];
    await page.route(/\/api\/unique-keys/, (route) => {
      const { searchParams } = new URL(route.request().url());
      asked.push(searchParams.toString());
      const found = { hash: '0'.repeat(32), key: 'far away', jid: 'far-1', state: 'waiting', since: Date.now() / 1000 };
      route.fulfill({ json: searchParams.get('key') === 'far away' ? [found] : searchParams.size ? []
        : Array.from({ length: 1000 }, (_, i) => ({ ...found, hash: String(i).padStart(32, 'a'), key: `key-${i}`, jid: `job-${i}` })) });
    });
    await signIn(page, world.base);
    await page.goto(world.base + '/unique-keys');
    await page.getByText('The first 1,000 keys are listed').waitFor();
    await page.getByRole('searchbox', { name: 'Filter unique keys' }).fill('far away');
    await page.getByRole('link', { name: 'far-1' }).waitFor();
    assert.ok(asked.includes('jid=far+away') && !asked.some((q) => q.startsWith('hash')), 'no hash has a space');
    await context.close();
  });
}
