// Features for rare cases: a token, a part of a chart, an incomplete search, an argument that is
// too long, a late job.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { go, open, signIn } from './browser.js';
import { story } from './person.js';
import { http, serve, until, virtualHost } from './sidecar.js';

/**
 * Makes a search of dead jobs find nothing in the first hundred thousand. To make so many jobs
 * would take too long.
 * @param {any} page
 */
const unfinished = (page) => page.route(/\/api\/dead-jobs\?.*text=/, async (route) => {
  const url = new URL(route.request().url());
  const next = url.searchParams.get('next');
  if (next === 'there') url.searchParams.delete('next');
  const response = await route.fetch({ url: url.href });
  const answer = { ...await response.json(), searched: 100_000, total_count: 250_000, filtered_count: undefined, page_count: undefined };
  await route.fulfill({ response, json: next ? answer : { ...answer, items: [], item_count: 0, filtered_count_at_least: 0, next: 'there' } });
});

/**
 * Makes the answer with errors incomplete, as if not all jobs had been counted.
 * @param {any} page
 */
const uncounted = (page) => page.route(/\/api\/errors/, async (route) => {
  const response = await route.fetch();
  const answer = await response.json();
  await route.fulfill({ response, json: { ...answer, complete: false, items: answer.items.map((/** @type {any} */ g) => ({ ...g, count: 1 })) } });
});

/** @param {any} world @param {number} n */
async function die(world, n) {
  const died = Date.now() / 1000 - 20;
  for (let i = 0; i < n; i++) await world.publish('dead_jobs',
    { type: 'dead_job', jid: `paged-${i}`, died_at: died - i, retry_count: 3, error_class: 'Full', error_message: 'no place left',
      job: { jid: `paged-${i}`, class: 'Paged', queue: 'bulk', args: ['page by page'] } });
  await until('all have died', async () => (await http(`${world.base}/api/dead-jobs?class=Paged&page=1`)).filtered_count === n);
}

export function rarely(world) {
  test('signing in with a token', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'millrace-ui-'));
    const token = 'a-token-of-the-tests';
    await writeFile(join(dir, 'tokens'), `ann management ${createHash('sha256').update(token).digest('hex')}\n`);
    await virtualHost(world, 'token');
    const sidecar = await serve(world, 'token', ['--auth', 'token', '--tokens-file', join(dir, 'tokens')]);
    try {
      const { page, context } = await open(world.browser);
      await page.goto(`http://127.0.0.1:${sidecar.port}/dead-jobs`);
      await page.getByRole('button', { name: 'Use a token' }).click();
      await page.getByLabel('Token').fill('another');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('alert').waitFor();
      await page.getByRole('button', { name: 'Use name and password' }).click();
      await page.getByLabel('Password').waitFor();
      await page.getByRole('button', { name: 'Use a token' }).click();
      await page.getByLabel('Token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Dead jobs', level: 1 }).waitFor();
      await page.getByRole('button', { name: 'Menu of ann' }).waitFor();
      await context.close();
    } finally {
      await sidecar.end();
      await rm(dir, { recursive: true, force: true });
    }
  });

  test('a request is tried where the API documents it', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await go(page, 'HTTP API');
    const route = (/** @type {string} */ method, /** @type {string} */ path) => page.locator('details', { has: page.getByText(path, { exact: true }) }).filter({ hasText: method });
    const list = route('GET', '/api/dead-jobs');
    await list.getByText('/api/dead-jobs', { exact: true }).click();
    const form = list.getByRole('form', { name: 'Try /api/dead-jobs' });
    await form.getByLabel('limit').fill('1');
    await form.getByRole('button', { name: 'Send' }).click();
    await form.getByRole('status').filter({ hasText: 'Status 200' }).waitFor();
    await form.getByRole('region', { name: 'the answer' }).filter({ hasText: 'jid' }).waitFor();

    const one = route('GET', '/api/dead-jobs/{jid}');
    await one.getByText('/api/dead-jobs/{jid}', { exact: true }).click();
    const asked = one.getByRole('form');
    await asked.getByRole('button', { name: 'Send' }).click();
    assert.equal(await asked.getByRole('status').count(), 0, 'without a jid, nothing is sent');
    await asked.getByLabel('jid').fill('no/such job');
    await asked.getByLabel('jid').press('Enter');
    await asked.getByRole('status').filter({ hasText: 'Status 404' }).waitFor();
    await asked.getByRole('region', { name: 'the answer' }).filter({ hasText: 'reason' }).waitFor();

    await page.getByText('/api/events', { exact: true }).click();
    await page.getByText('/api/retries/{jid}/kill', { exact: true }).click();
    assert.equal(await page.getByRole('form').count(), 2, 'requests that change something, or do not end, have no form');
    await context.close();
  });

  story(world, 'a part of a chart is looked at closely', async (me) => {
    const drags = async (name, address) => {
      await me.find('figure', name).drag(0.4, 0.7);
      await until('a part is chosen', () => address.test(me.address()));
    };
    await me.find('button', /^Table of Jobs per/).seen();
    await drags(/^Jobs per/, /^\/dashboard\?from=\d+&to=\d+$/);
    const out = me.find('button', 'Zoom out');
    await out.seen();
    await me.back();
    await out.gone();
    assert.equal(me.address(), '/dashboard', 'one step back');
    await drags(/^Jobs per/, /from=/);
    await out.click();
    await out.gone();
    assert.equal(me.address(), '/dashboard');

    await me.go('Scheduled');
    await me.find('button', /^Table of Scheduled jobs/).seen();
    await drags(/^Scheduled jobs by due time/, /^\/scheduled-jobs\?from=\d+&to=\d+$/);
    await me.listed.reads(/^1–\d+ of \d+ matching/);
    await me.find('button', 'Remove filter from').click();
    await me.find('button', 'Remove filter to').click();
    await me.listed.reads(/ scheduled jobs/);
  });

  story(world, 'a search that has not ended continues', async (me) => {
    await me.go('Dead');
    await me.filter('warehouse-3');
    const list = me.find('region', 'dead jobs');
    await list.reads(/No matches so far.*Searched 100,000 of 250,000/);
    await list.find('button', 'Keep searching').click();
    await list.find('row', /SyncInventory/).first().seen();
    await me.find('button', 'Remove filter text').click();
    await me.listed.reads(/dead jobs/);
  }, { prepare: unfinished });

  story(world, 'a continued search is paged through from where it continues, and back', async (me) => {
    await die(world, 45);
    await me.go('Dead');
    await me.find('combobox', 'Rows per page').choose('20');
    await me.filter('page by page');
    await me.find('button', 'Keep searching').click();
    const jobs = me.find('table', 'dead jobs').find('checkbox', /^Select job paged-/);
    const page = async (/** @type {number} */ n, /** @type {number} */ size) => {
      await me.listed.reads(new RegExp(`^${size} matching, of 250.*Page ${n}$`));
      const from = (n - 1) * 20;
      await me.find('checkbox', `Select job paged-${from}`, { exact: true }).seen();
      await me.find('checkbox', `Select job paged-${from + size - 1}`, { exact: true }).seen();
      assert.equal(await jobs.count(), size);
    };
    const [on, back] = [me.find('button', 'Next page'), me.find('button', 'Previous page')];
    await page(1, 20);
    assert.ok(await back.disabled());
    await on.click();
    await page(2, 20);
    await on.click();
    await page(3, 5);
    assert.ok(await on.disabled());
    await back.click();
    await page(2, 20);
    await back.click();
    await page(1, 20);
    await me.back();
    await page(2, 20);
  }, { prepare: unfinished });

  story(world, 'errors that are not all counted yet are counted before anything is done to them', async (me) => {
    await me.go('Dead');
    await me.find('button', 'By error').click();
    await me.find('button', /^Retry now all 1 with SMTPAuthenticationError of SendInvoice/).click();
    await me.dialog.reads(/Retry ([2-9]|\d\d+) dead jobs\?/);
    await me.press('Escape');
    await me.dialog.gone();
  }, { prepare: uncounted });

  story(world, 'arguments that are too long to be shown at once', async (me) => {
    await http(`${world.base}/api/jobs`, 'POST', { jid: 'long-arguments', class: 'Long', queue: 'bulk', args: ['x'.repeat(80_000), 'the end'], at: Date.now() / 1000 + 90_000 });
    await me.go('Scheduled');
    await me.filter('class:Long');
    await me.find('table', 'scheduled jobs').find('link', 'Long', { exact: true }).click();
    const shown = me.find('region', 'the arguments');
    await shown.reads(/x{1000}$/);
    await me.find('region', 'Arguments').find('button', /^Show all/).click();
    await shown.reads(/"the end"/);
  });
}
