// Names and messages that would break a page: very long ones, some written from right to left, some that look like markup.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';

const now = () => Date.now() / 1000;
const long = 'VeryLong'.repeat(62);
const longQueue = 'hostile-' + 'q'.repeat(180);
const markup = '<img src=x onerror="document.title=1">';
const turned = '\u202egnp.exe';
const lines = Array.from({ length: 10_000 }, (_, i) => `/app/jobs/deep.rb:${i}:in \`call'`);
const message = 'the answer was not understood: ' + 'x'.repeat(200_000);

/** @param {any} world */
async function plant(world) {
  const die = (/** @type {string} */ jid, /** @type {any} */ record, job = {}) => world.publish('dead_jobs', { type: 'dead_job', jid, died_at: now(), retry_count: 3, ...record, job: { jid, class: 'Hostile', queue: 'hostile', args: [jid], retry: 3, ...job } });
  for (let i = 0; i < 60; i++) await die('hostile-long-' + i, { error_class: long, error_message: long }, { class: long, queue: longQueue, tags: [long] });
  await die('hostile-turned', { error_class: turned, error_message: turned }, { class: turned });
  await die('hostile-markup', { error_class: markup, error_message: markup }, { class: markup });
  await die('hostile-message', { error_class: 'Huge', error_message: message, backtrace: lines });
  await until('they are read', async () => (await http(`${world.base}/api/dead-jobs?page=1&text=hostile-`)).filtered_count_at_least >= 62); // records over 64 KiB are not searched
}

export function hostile(world) {
  test('no name or message is too long for a page, at any width', async () => {
    await plant(world);
    const { page, context, faults } = await open(world.browser, { viewport: { width: 1700, height: 900 } });
    await signIn(page, world.base);
    faults.length = 0;
    const wrong = [];
    const paths = ['/dashboard', '/dead-jobs', '/dead-jobs?view=storm', '/job-queues', '/job-queues/' + longQueue, '/job-metrics/' + long, '/dead-jobs?class=' + long, '/jobs/hostile-long-1', '/jobs/hostile-message', '/jobs/hostile-markup'];
    for (const path of paths) {
      await page.setViewportSize({ width: 1700, height: 900 });
      await page.goto(world.base + path);
      await page.waitForFunction(() => document.querySelector('main tbody tr:not(.sk), main .facts, main .empty'));
      await page.waitForTimeout(500);
      wrong.push(...await resized(page, path.slice(0, 60)));
    }
    assert.deepEqual([...wrong, ...faults.filter((f) => !/job-queues|404/.test(f))], []);
    assert.notEqual(await page.title(), '1', 'markup is text');
    assert.deepEqual(await page.evaluate(() => window.refusals), []);
    await context.close();
  });

  test('of a huge message and backtrace the beginning is shown, and the rest when it is asked for', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(world.base + '/jobs/hostile-message');
    const error = page.getByRole('region', { name: 'Error', exact: true });
    await error.getByRole('region', { name: 'Backtrace' }).waitFor();
    const height = () => page.evaluate(() => document.documentElement.scrollHeight);
    assert.ok(await height() < 4000, `the page is ${await height()} pixels high`);
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 2000);
    assert.ok((await error.getByRole('region', { name: 'Message' }).innerText()).length < 3000);
    await error.getByRole('button', { name: /^Show all \d+ KB/ }).click();
    await until('all of it is there', async () => (await error.getByRole('region', { name: 'Message' }).innerText()).length > 200_000);
    assert.match(await error.getByRole('region', { name: 'Backtrace' }).innerText(), /deep\.rb:9999:/);
    assert.ok(await height() < 4000, `the page is ${await height()} pixels high`);
    await page.goto(world.base + '/dead-jobs?jid=hostile-message');
    const row = page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(1);
    await row.waitFor();
    assert.ok((await row.innerText()).length < 1000, 'a list has the beginning of it');
    await context.close();
  });

  story(world, 'a name that turns the direction of writing is shown with what it has in it', async (me) => {
    await me.go('Dead');
    await me.filter('jid:hostile-turned');
    const row = me.find('table', 'dead jobs').find('row').nth(1);
    await row.reads(/\\u202egnp\.exe/);
    await row.find('link', /gnp\.exe/).first().click();
    await me.find('heading', /\\u202egnp\.exe/, { level: 1 }).seen();
  });
}
