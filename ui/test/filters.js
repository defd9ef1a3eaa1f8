// Filters of lists: which terms are accepted, which are refused, and which links set them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overflow } from './boxes.js';
import { go, open, signIn } from './browser.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';

/** Makes some scheduled jobs late. @param {any} page */
export const late = (page) => page.route('**/api/due-times*', async (route) => {
  const response = await route.fetch();
  await route.fulfill({ response, json: { ...await response.json(), before: 7 } });
});

export function filters(world) {
  test('errors are filtered by what groups have; a filter that is not looked at is shown as such', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await go(page, 'Dead');
    const box = page.getByRole('combobox', { name: /^Filter/ });
    await page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(3).waitFor();
    assert.equal(await box.getAttribute('placeholder'), 'Filter: text, queue:, class:, error: …');
    await page.getByRole('button', { name: 'By error' }).click();
    const errors = page.getByRole('table', { name: 'Errors' });
    await errors.getByRole('row').nth(1).waitFor();
    assert.equal(await box.getAttribute('placeholder'), 'Filter: queue:, class:, from:, to:');
    await box.fill('warehouse-3');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'this list has no text search: use queue, class, from, to or died' }).waitFor();
    assert.equal(new URL(page.url()).search, '?view=storm');
    await box.fill('error:Timeout');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'unknown filter “error”' }).waitFor();
    await page.goto(world.base + '/dead-jobs?view=storm&text=warehouse-3&class=SyncInventory&page=2');
    const search = page.getByRole('search');
    await search.getByText('this list has no filter “text”').waitFor();
    await search.getByRole('button', { name: 'Remove filter text' }).click();
    await search.getByText('this list has no filter “text”').waitFor({ state: 'detached' });
    assert.equal(new URL(page.url()).search, '?view=storm&class=SyncInventory', 'the list begins at its first page');
    await context.close();
  });

  story(world, 'a span of time is suggested where it means something', async (me) => {
    const offered = me.find('listbox', 'Suggestions');
    const spans = { Scheduled: ['scheduled jobs', /^due:<1h due within an hour$/], Retries: ['retries', /^due:<1h due within an hour$/],
      Blocked: ['blocked jobs', null], Dead: ['dead jobs', /^died:<1h died within the last hour$/] };
    for (const [page, [set, span]] of Object.entries(spans)) {
      await me.go(page);
      const box = me.find('combobox', 'Filter ' + set);
      await box.fill('q');
      await offered.reads(/^queue: queue name$/);
      await box.fill('d');
      if (span) await offered.reads(span);
      else await offered.gone();
    }
    await offered.find('option').click();
    await until('the list is filtered', () => me.address() === '/dead-jobs?from=-1h');
  });

  story(world, 'jobs are found by a value in their arguments, and all that match are deleted', async (me) => {
    const all = { 'args-1': { customer: 42, 'ship.to': 'Köln' }, 'args-2': { customer: 43, note: 'customer 42', 'ship.to': 'Köln' }, 'args-3': { customer: '42' } };
    for (const [jid, args] of Object.entries(all)) {
      await world.publish('dead_jobs', { type: 'dead_job', jid, died_at: Date.now() / 1000, retry_count: 1, error_class: 'ArgsError', error_message: 'no such customer',
        job: { jid, class: 'ArgsJob', queue: 'bulk', args: [args], retry: 3 } });
    }
    await until('they are read', async () => (await http(`${world.base}/api/dead-jobs?class=ArgsJob&page=1`)).filtered_count === 3);
    await me.go('Dead');
    const box = me.find('combobox', /^Filter /);
    await box.fill('arg');
    await me.find('option', /^args\. ?argument: args\.0\.customer:42/).click();
    assert.equal(await box.value(), 'args.');
    for (const wrong of ['args.', 'args:', 'args.0.customer', 'args.0..customer:42', 'args.:42', String.raw`args.0.ship\to:Köln`]) {
      await me.filter(wrong);
      await me.find('alert').reads(/is not a value in the arguments: use a path and a value, such as args\.0\.customer:42/);
      await me.find('button', 'Remove ' + wrong).click();
    }
    assert.equal(me.address(), '/dead-jobs');
    await me.filter('class:ArgsJob');
    await me.filter(String.raw`args.0.ship\.to:Köln`);
    await me.listed.reads(/^1–2 of 2 matching/);
    await me.find('search').reads(/class: ArgsJob .*args\.0\.ship\\\.to: Köln/);
    await me.filter('args.0.customer:42');
    await me.find('search').reads(/args\.0\.customer: 42/);
    await until('the filter is replaced', () => me.address() === '/dead-jobs?class=ArgsJob&args=0.customer%3A42');
    await me.listed.reads(/^1–2 of 2 matching/);
    await me.find('checkbox', 'Select job args-1').check();
    await me.find('button', 'Select all 2 matching').click();
    await me.find('region', 'Selection').find('button', 'Delete').click();
    await me.dialog.reads(/Filter class: ArgsJob, args: 0\.customer:42 Reason/);
    await me.dialog.find('button', 'Delete 2 dead jobs').click();
    await me.operation('Delete 2 dead jobs').reads(/2 of 2 done/);
    await me.find('region', 'dead jobs').reads(/No matches in [\d,]+ jobs/);
    await me.find('button', 'Remove filter args').click();
    await me.listed.reads(/^1 matching/);
    await me.find('checkbox', 'Select job args-2').seen();
  });

  test('a filter by arguments is in the link to a list, its downloads and its request; running jobs have none', async () => {
    const { page, context } = await open(world.browser, { permissions: ['clipboard-read', 'clipboard-write'] });
    await signIn(page, world.base);
    await page.goto(world.base + '/jobs?state=retries&args=1%3A1005');
    const rows = page.getByRole('table', { name: 'retries' }).getByRole('row');
    await rows.filter({ hasText: 'SyncInventory' }).waitFor();
    assert.equal(await rows.count(), 2, 'the head and one job');
    for (const [name, format] of [['Download as NDJSON', 'ndjson'], ['Download as CSV', 'csv']]) {
      assert.equal(await page.getByRole('link', { name }).getAttribute('href'), '/api/retries?args=1%3A1005&format=' + format);
    }
    await page.getByRole('button', { name: 'Copy as curl' }).first().click();
    await until('it is copied', async () => (await page.evaluate(() => navigator.clipboard.readText())).includes('/api/retries?args=1%3A1005&page=1'));
    await page.getByRole('tab', { name: 'Running' }).click();
    await page.getByRole('search').getByText('this list has no filter “args”: it is ignored').waitFor();
    await context.close();
  });

  test('an error leads to all that have it: here, from the first page on, or in another tab', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    const { next } = await http(`${world.base}/api/dead-jobs?class=SyncInventory&page=1&page_size=20`);
    assert.ok(next);
    await page.goto(`${world.base}/dead-jobs?class=SyncInventory&page_size=20&page=2&next=${encodeURIComponent(next)}`);
    const error = page.getByRole('table', { name: 'dead jobs' }).getByRole('link', { name: 'Timeout' }).first();
    for (const how of [{ modifiers: ['ControlOrMeta'] }, { button: 'middle' }]) {
      const [tab] = await Promise.all([context.waitForEvent('page'), error.click(how)]);
      await tab.getByRole('heading', { name: 'Dead jobs', level: 1 }).waitFor();
      assert.equal(tab.url(), world.base + '/dead-jobs?error=Timeout');
      await tab.close();
    }
    await error.click();
    await until('the list is filtered', () => new URL(page.url()).search === '?class=SyncInventory&page_size=20&error=Timeout');
    await page.getByText(/^1–20 of/).waitFor();
    await context.close();
  });

  test('an error on the dashboard leads to its retries and to its dead jobs, with a message that a job had', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    const group = { fingerprint: 'fp-00000000000000aa', class: 'SyncInventory', error_class: 'Timeout', message: 'no answer within <n> ms',
      example: 'no answer within 3007 ms', count: 192, retries: 112, dead: 80, first: 1, last: 2, jid: 'x' };
    await page.route(/\/api\/errors$/, (route) => route.fulfill({ json: { items: [group], complete: true, searched: 192, as_of: 1 } }));
    await page.goto(world.base + '/dashboard');
    const top = page.getByRole('region', { name: 'Top errors' }).getByRole('listitem');
    await top.getByText('no answer within 3007 ms').waitFor();
    const links = await top.getByRole('link').evaluateAll((all) => all.map((a) => `${a.textContent} ${a.getAttribute('href')}`));
    assert.deepEqual(links, ['Timeout /retries?error=fp-00000000000000aa', '112 retries /retries?error=fp-00000000000000aa', '80 dead /dead-jobs?error=fp-00000000000000aa']);
    await context.close();
  });

  test('a list of one error says which, also from a bookmark, and so does the dialog of its jobs', async () => {
    const { page, context } = await open(world.browser, { viewport: { width: 390, height: 844 } });
    await signIn(page, world.base);
    const groups = (await http(`${world.base}/api/errors?set=dead-jobs&class=SyncInventory`)).items;
    const { fingerprint, count } = groups.find((/** @type {any} */ g) => g.error_class === 'Timeout');
    const named = 'error: Timeout in SyncInventory: no answer from <n> within <n> ms';
    const reads = async (/** @type {any} */ at) => (await at.innerText()).replace(/\s+/g, ' ').trim();
    await page.goto(`${world.base}/dead-jobs?error=${fingerprint}`);
    const search = page.getByRole('search');
    await until('the filter says which', async () => await reads(search) === named);
    assert.match(await search.locator('.chip').getAttribute('title'), new RegExp(fingerprint + '$'));
    await page.reload();
    await until('the filter says which', async () => await reads(search) === named);
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: `Select all ${count} matching` }).click();
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(named).waitFor();
    assert.doesNotMatch(await reads(page.locator('body')), /fp-/);
    assert.deepEqual(await page.evaluate(overflow), []);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'By error' }).click();
    await until('the filter says which, and that it is ignored', async () => /^error: Timeout in SyncInventory.*no filter “error”/.test(await reads(search)));
    await context.close();
  });

  story(world, 'errors say how often they happen now, and on which hosts', async (me) => {
    const now = () => Date.now() / 1000;
    const ran = (jid, host, status) => ({ type: 'job_metric', timestamp: now() - 60, jid, job_class: 'RateOfErrors', queue: 'bulk', status,
      worker_identity: `${host}:1:shop`, attempt: 1, error_class: status === 'failed' ? 'NoRoute' : undefined });
    for (const n of [1, 2, 3]) {
      const jid = 'rate-' + n;
      await world.publish('retries', { type: 'retry', jid, retry_at: now() + 9000, retry_count: 1, error_class: 'NoRoute',
        error_message: 'no route to host', job: { jid, class: 'RateOfErrors', queue: 'bulk', args: [], retry: 5 } });
    }
    await world.publish('job_metrics', [ran('rate-1', 'app-9', 'failed'), ran('rate-1', 'app-9', 'failed'), ran('rate-2', 'app-9', 'failed'),
      ran('rate-2', 'app-7', 'failed'), ran('rate-3', 'app-8', 'failed'), ran('rate-3', 'app-8', 'success')]);
    await until('the runs are read', async () => (await http(`${world.base}/api/errors?set=retries&class=RateOfErrors`)).items[0]?.recent === 5);
    await me.go('Retries');
    await me.find('group', 'View').find('button', 'By error').click();
    await me.filter('class:RateOfErrors');
    const row = me.find('table', 'Errors').find('row', /NoRoute/);
    await row.reads(/NoRoute no route to host RateOfErrors 3 0\.5\/min app-9 3, app-7 1 \+1/);
    await me.find('table', 'Errors').find('button', 'Failure rate').click();
    assert.equal(await me.find('columnheader', 'Failure rate').state('sort'), 'descending');
    await row.find('link', 'app-9').click();
    await until('its processes are shown', () => me.address() === '/worker-processes?text=app-9%3A');
  });

  story(world, 'what is due leads from the dashboard to the list, and there from any page to the first', async (me) => {
    await me.find('button', '7 overdue').seen(); // a chart that gets another kind of bars is made again, and ends a drag
    await me.find('figure', /^Scheduled jobs by due time/).drag(0.4, 0.7);
    await until('a part is chosen', () => /^\/scheduled-jobs\?from=\d+&to=\d+$/.test(me.address()));
    await me.listed.reads(/ matching/);
    await me.back();
    assert.equal(me.address(), '/dashboard');
    await me.find('heading', 'Dashboard', { level: 1 }).seen(); // the list has such a button too
    await me.find('button', '7 overdue').click();
    await until('the list is there', () => /^\/scheduled-jobs\?to=\d+$/.test(me.address()));
    await me.find('button', 'Remove filter to').click();
    await me.find('button', 'Next page').click();
    await me.find('button', '7 overdue').click();
    await until('the first page is there', () => /^\/scheduled-jobs\?to=\d+$/.test(me.address()));
  }, { prepare: late });
}
