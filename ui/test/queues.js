// The table of queues: very many of them, one in which jobs wait too long, and the links to it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';

const name = (/** @type {number} */ i) => 'queue-' + String(i).padStart(5, '0');
const queue = (/** @type {number} */ i) => ({ name: name(i), state: 'idle', ready: 0, unacked: 0, consumers: 1, publish_rate: 0, deliver_rate: 0,
  ack_rate: 0, growth_rate: 0, bytes: 0, oldest: null, scheduled: 0, retries: 0, dead: 0, leased: 0, processes: 0, slots: 0, busy: 0, rejects_lost: false });

/**
 * More queues than a broker should have.
 * @param {number} total
 * @param {string[]} asked the requests of the page for metrics
 */
const crowd = (total, asked) => async (/** @type {any} */ page) => {
  page.on('request', (/** @type {any} */ r) => { if (r.url().includes('/api/queue-throughput')) asked.push(r.url()); });
  await page.route(/\/api\/job-queues\?page=/, (/** @type {any} */ route) => {
    const query = new URL(route.request().url()).searchParams;
    const [n, size] = [Number(query.get('page')), Number(query.get('page_size'))];
    const items = Array.from({ length: Math.max(0, Math.min(size, total - (n - 1) * size)) }, (_, i) => queue((n - 1) * size + i));
    return route.fulfill({ json: { total_count: total, filtered_count: total, item_count: items.length, page: n, page_size: size, items } });
  });
};

/** Makes the sidecar report that jobs wait too long in one queue alone. @param {string} name */
const late = (name) => (/** @type {any} */ page) => page.route('**/api/attention', async (/** @type {any} */ route) => {
  const answer = await (await route.fetch()).json();
  const others = answer.items.filter((/** @type {any} */ i) => i.kind !== 'oldest_too_old');
  await route.fulfill({ json: { ...answer, items: [{ kind: 'oldest_too_old', severity: 'critical', subject: name,
    text: 'the oldest job has waited at least 9 min; the limit is 10 s', value: 540 }, ...others] } });
});

/**
 * Makes all attempts of the last hour fail, ten per second. Twice as many are acknowledged now.
 * @param {any} page
 */
const failing = async (page) => {
  await page.route(/\/api\/job-metrics\?/, async (/** @type {any} */ route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, series: answer.series.map((/** @type {any} */ p) => ({ ...p, success: 0, failed: 600, dead: 0, discarded: 0, expired: 0 })) } });
  });
  await page.route(/\/api\/job-queues\?page=/, async (/** @type {any} */ route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, items: answer.items.map((/** @type {any} */ q, /** @type {number} */ i) => ({ ...q, ack_rate: i ? 0 : 20 })) } });
  });
};

/** Makes more problems than the dashboard has room for. @param {any} page */
const crises = (page) => page.route('**/api/attention', (/** @type {any} */ route) => route.fulfill({ json: { now: Date.now() / 1000, items: [
  { kind: 'process_lost', severity: 'warning', subject: 'web-1:7:shop', text: 'no heartbeat for 2 min; 1 job was running', value: 120 },
  ...Array.from({ length: 10 }, (_, i) => ({ kind: 'queue_growing', severity: 'warning', subject: name(i), text: 'it grows by 9.0 jobs/s, 300 jobs wait', value: 9 })),
] } }));

/** Makes everything work. @param {any} page */
const calm = (page) => page.route('**/api/attention', (/** @type {any} */ route) => route.fulfill({ json: { now: Date.now() / 1000, items: [] } }));

export function queues(world) {
  /** @type {string[]} */
  const asked = [];
  story(world, 'more queues than are shown: all that are had are found, and it is said how many are not', async (me) => {
    await me.go('Scheduled');
    await me.go('Dashboard');
    await me.find('status').reads(/Showing the first 10,000 queues by name\. 203 more are not listed/);
    await me.find('region', 'Queues').reads(/^Queues 10,203/);
    await me.find('region', 'Now').reads(/in the first 10,000 queues/);
    const table = me.find('table', 'Queues');
    await until('each row has its line', async () => await table.find('img', /^Jobs per minute in queue-/).count() === 50);
    // One, and a second one if a minute has ended meanwhile.
    assert.ok(asked.length <= 2, `${asked.length} questions for 50 lines`);
    await me.find('searchbox', 'Filter queues by name').fill(name(9999));
    await table.find('link', name(9999)).seen();
    assert.equal(await table.find('rowheader').count(), 1);
    await me.find('region', 'Queues').find('button', 'Copy as curl').click();
    await me.copied(/\/api\/job-queues\?page=1&page_size=500' \| jq '\.items\[\] \| select\(\.name \| ascii_downcase \| contains\("queue-09999"\)\)'$/);
  }, { prepare: crowd(10_203, asked) });

  test('the lines of queues are asked for once, and then what is new', async () => {
    const { page, context } = await open(world.browser);
    /** @type {number[][]} */
    const ranges = [];
    await page.clock.install();
    // Removes the sidecar's time, so that the page uses its own clock, which is moved below.
    await page.route('**/api/overview', async (/** @type {any} */ route) => route.fulfill({ json: { ...await (await route.fetch()).json(), now: undefined } }));
    await page.route('**/api/queue-throughput*', (/** @type {any} */ route) => {
      const [from, to, step] = ['from', 'to', 'step'].map((name) => Number(new URL(route.request().url()).searchParams.get(name)));
      ranges.push([from, to]);
      return route.fulfill({ json: { from, to, step_seconds: step, queues: [{ name: 'demo.default', counts: Array((to - from) / step).fill(step * ranges.length) }] } });
    });
    await signIn(page, world.base);
    const line = (/** @type {string} */ says) => page.getByRole('img', { name: new RegExp('^Jobs per minute in demo.default, last 30 minutes: ' + says) }).waitFor();
    await line('from 60 to');
    assert.equal(await page.locator('svg.spark').count(), 1, 'a queue without jobs has no line');
    await page.clock.fastForward(120_000);
    await line('from 60 to (120|180|240)');
    const [[from, to], ...more] = ranges;
    assert.equal(to - from, 1800);
    assert.equal(more.at(-1)[1], to + 120);
    for (const [begins] of more) assert.ok(begins === to || begins === to - 120, 'what is known is not asked for again');
    await context.close();
  });

  story(world, 'a queue whose oldest job waits for too long is marked', async (me) => {
    const marks = (/** @type {any} */ of) => of.find('img', 'Too old').count();
    const table = me.find('table', 'Queues');
    // The page may still show the problems from before the scene was set.
    await until('archive alone is marked', async () => await marks(table.find('row', /archive/)) === 1 && await marks(table) === 1);
  }, { prepare: late('archive') });

  story(world, 'what needs attention says of which queue or process it speaks, and all of it can be seen', async (me) => {
    await me.go('Scheduled');
    await me.go('Dashboard');
    const region = me.find('region', 'Needs attention');
    await region.find('link', 'Process web-1:7:shop: no heartbeat for 2 min; 1 job was running').seen();
    await region.find('link', `Queue ${name(6)}: it grows by 9.0 jobs/s, 300 jobs wait`).seen();
    assert.equal(await region.find('listitem').count(), 8);
    await region.find('link', 'and 3 more').click();
    await region.find('link', `Queue ${name(9)}: it grows by 9.0 jobs/s, 300 jobs wait`).seen();
    assert.equal(await region.find('listitem').count(), 11);
    assert.equal(me.address(), '/dashboard?attention=all');
  }, { prepare: crises });

  story(world, 'without a problem it is said when that was found out', async (me) => {
    await me.go('Scheduled');
    await me.go('Dashboard');
    await me.find('region', 'Needs attention').reads(/^Needs attention No issues Checked (now|\d+ s ago)$/);
  }, { prepare: calm });

  story(world, 'what is processed is what the table sends out, and is compared with all attempts of an hour ago', async (me) => {
    await me.go('Scheduled');
    await me.go('Dashboard');
    await me.find('region', 'Now').reads(/^Processed 20\/s ▲ 100 % in 1 h Failed 10\/s same as 1 h ago/);
    await me.find('table', 'Queues').reads(/out 20\/s$/);
  }, { prepare: failing });

  story(world, 'a queue is paused with a reason, and resumed without a question', async (me) => {
    await me.find('table', 'Queues').find('link', 'archive').click();
    await me.find('button', 'Pause', { exact: true }).click();
    await me.dialog.reads(/Workers take no new jobs until you resume it\. Running jobs finish/);
    await me.dialog.find('textbox', /^Reason/).fill('the archive is full');
    await me.dialog.find('button', 'Pause').click();
    await me.find('status').reads(/Paused by guest .*: the archive is full/);
    await me.find('main').find('link', 'Queues', { exact: true }).click();
    await me.find('table', 'Queues').find('row', /archive/).reads(/paused by guest .*: the archive is full/);
    await me.find('table', 'Queues').find('link', 'archive').click();
    // No confirmation is needed, because this can be undone.
    await me.find('button', 'Resume', { exact: true }).click();
    await me.pointAtNotes();
    await me.find('button', 'Pause', { exact: true }).seen();
    await me.find('status').gone();
    await me.notes.find('button', 'Undo').click();
    await me.pointAway();
    await me.find('status').reads(/Paused by guest .*: the archive is full/);
    await me.find('button', 'Resume', { exact: true }).click();
    await me.find('status').gone();
  });

  story(world, 'queues that are chosen are paused and resumed, each that it is to be done to', async (me) => {
    for (const n of [1, 2, 3]) await http(`${world.base}/api/job-queues/chosen-${n}`, 'PUT');
    const table = me.find('table', 'Queues');
    const bar = me.find('region', 'Selection');
    await me.find('searchbox', 'Filter queues by name').fill('chosen-');
    await until('they are listed', async () => await table.find('rowheader').count() === 3);
    const rows = (/** @type {RegExp} */ says) => until(`three rows say ${says}`, async () => (await table.find('row').texts()).filter((t) => says.test(t)).length === 3);
    await table.find('checkbox', 'Select queue chosen-2').check();
    await bar.reads(/^1 queue selected/);
    await bar.find('button', 'Pause').click();
    await me.dialog.find('button', 'Pause').click();
    await me.notes.reads(/chosen-2: paused/);
    await bar.gone();
    await table.find('row', /chosen-2/).reads(/paused by guest/);

    await table.find('checkbox', 'Select all on this page').check();
    await bar.reads(/^3 queues selected/);
    await bar.find('button', 'Pause').click();
    await me.dialog.reads(/Pause 2 queues\?.*Queues chosen-1, chosen-3/);
    await me.dialog.find('textbox', /^Reason/).fill('a flood');
    await me.dialog.find('button', 'Pause 2 queues').click();
    await me.notes.reads(/2 queues: paused/);
    await bar.reads(/^1 queue selected/);
    await rows(/paused by guest/);
    await table.find('row', /chosen-3/).reads(/: a flood/);
    assert.ok(await bar.find('button', 'Pause').disabled());

    await table.find('checkbox', 'Select all on this page').check();
    await bar.find('button', 'Resume').click();
    await me.dialog.find('button', 'Resume 3 queues').click();
    await me.notes.reads(/3 queues: resumed/);
    await bar.gone();
    await me.pointAway();
    await rows(/^chosen-\d (?!paused)/);
  });

  story(world, 'who may only look has no queues to choose', async (me) => {
    await me.find('table', 'Queues').find('link', 'archive').seen();
    assert.equal(await me.find('table', 'Queues').find('checkbox').count(), 0);
  }, { as: ['watcher', 'watches'] });

  story(world, 'queues have a page of their own, which the number of ready jobs leads to', async (me) => {
    await me.find('navigation', 'Main').find('link', 'Queues').reads(/^Queues \d+$/);
    await me.find('region', 'Now').find('link').nth(2).click();
    await me.find('heading', /^Queues/, { level: 1 }).seen();
    assert.equal(me.address(), '/job-queues');
    assert.equal(await me.find('navigation', 'Main').find('link', 'Queues').state('current'), 'page');
    await me.find('searchbox', 'Filter queues by name').fill('arch');
    await until('it is filtered', async () => await me.find('table', 'Queues').find('rowheader').count() === 1);
    await me.find('table', 'Queues').find('link', 'archive').click();
    await me.find('heading', /archive$/, { level: 1 }).seen();
    assert.equal(await me.find('navigation', 'Main').find('link', 'Queues').state('current'), 'page');
  });
}
