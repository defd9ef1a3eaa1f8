// Charts that lead to a list, that show ticked rows, and that compare ranges.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { late } from './filters.js';
import { story } from './person.js';
import { until } from './sidecar.js';

const halfDay = 43_200;

/** Makes one job due after each of some times, in seconds. @param {any} page @param {() => number[]} times */
const dueIn = (page, times) => page.route('**/api/due-times*', async (/** @type {any} */ route) => {
  const answer = await (await route.fetch()).json();
  const counts = answer.counts.map((/** @type {number} */ _, /** @type {number} */ i) => times().filter((s) => Math.floor(s / answer.step) === i).length);
  const shown = counts.reduce((/** @type {number} */ n, /** @type {number} */ m) => n + m, 0);
  await route.fulfill({ json: { ...answer, counts, before: 0, after: times().length - shown } });
});

/**
 * Runs in the page: returns which part of the height of a chart its highest green bar has.
 * @param {any} figure
 */
function highest(figure) {
  const canvas = figure.querySelector('canvas');
  const [whole, plot] = [canvas, figure.querySelector('.u-over')].map((el) => el.getBoundingClientRect());
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const first = data.findIndex((_, i) => i % 4 === 0 && data[i] === 84 && data[i + 1] === 190 && data[i + 2] === 126);
  const y = Math.floor(first / 4 / canvas.width) * (whole.height / canvas.height);
  return first < 0 ? 0 : (plot.bottom - whole.top - y) / plot.height;
}

export function charts(world) {
  story(world, 'a bar of due times filters the list, by a click and from the table', async (me) => {
    /** Returns the filters of the list, once they are exactly these. */
    const filtered = (/** @type {string[]} */ ...names) => until('the list is filtered by ' + names, () => {
      const query = new URLSearchParams(me.address().split('?')[1]);
      return [...query.keys()].sort().join() === names.join() && names.map((name) => Number(query.get(name)));
    });
    await me.go('Scheduled');
    await me.find('region', 'Due', { exact: true }).find('button', '30d').click();
    await me.find('button', /^Table of Scheduled jobs/).click();
    const rows = me.find('table', /^Scheduled jobs by due time/).find('row');
    await until('there is a row for each half of a day, and one for what is overdue', async () => await rows.count() === 1 + 1 + 60);
    const row = rows.nth(3);
    const [, due] = await row.reads(/ (\d+) –$/);
    await row.find('link').click();
    const [from, to] = await filtered('from', 'to');
    assert.equal(to - from, halfDay);
    await me.listed.reads(new RegExp(`of ${due} matching`));
    await rows.nth(1).find('link').click();
    await filtered('to');

    await me.find('button', /^Chart of Scheduled jobs/).click();
    await me.find('button', /^Table of Scheduled jobs/).seen();
    await me.find('figure', /^Scheduled jobs by due time/).clickAt(0.12);
    const [begin, end] = await filtered('from', 'to');
    assert.equal(end - begin, halfDay);
    const off = Math.abs(begin - from) % halfDay;
    assert.ok(Math.min(off, halfDay - off) <= 300, 'the bar begins where one did in the table, some minutes ago');
    await me.listed.reads(/of \d+ matching/);
  }, { prepare: late });

  /** @type {number[]} */
  let times = [];
  story(world, 'the range of due times is the smallest that has most of them', async (me) => {
    for (const [range, due] of /** @type {[string, number[]][]} */ ([['1m', [9, 9, 12, 15, 90_000]], ['5m', [20, 100, 200, 250]], ['1h', [20, 1200, 1300, 1400, 80_000]],
      ['24h', [20, 7200, 40_000]], ['7d', [100_000, 200_000]], ['24h', []]])) {
      times = due;
      await me.go('Scheduled');
      const fit = me.find('region', 'Due', { exact: true }).find('button', range, { exact: true });
      await until('the range is ' + range, async () => await fit.state('pressed') === 'true');
      await me.go('Dashboard');
    }
  }, { prepare: (/** @type {any} */ page) => dueIn(page, () => times) });

  test('the bars of a low chart use its height, though a mark has a name', async () => {
    const { page, context } = await open(world.browser);
    await dueIn(page, () => [9, 9, 9]);
    await signIn(page, world.base);
    await page.goto(world.base + '/scheduled-jobs');
    const chart = page.getByRole('figure', { name: /^Scheduled jobs by due time/ });
    await chart.locator('canvas').waitFor();
    const part = await until('the bar is drawn', () => chart.evaluate(highest));
    assert.ok(part > 0.8 && part <= 1, `the bar has ${part} of the height`);
    await context.close();
  });

  story(world, 'the throughput on the dashboard has its unit', async (me) => {
    const card = me.find('region', 'Throughput', { exact: true });
    await card.reads(/^Throughput jobs per min /);
    await me.find('group', 'Range').first().find('button', '24h', { exact: true }).click();
    await card.reads(/^Throughput jobs per 15 min /);
  });

  story(world, 'classes that are ticked have a line each', async (me) => {
    await me.go('Metrics');
    await me.find('button', '24h').click();
    const tick = (/** @type {string} */ name) => me.find('table', 'Classes').find('checkbox', `Show ${name} in the chart`);
    const shown = (/** @type {string} */ show) => until('it is in the address', () => me.address() === '/job-metrics?range=24h' + (show && '&show=' + show));
    await tick('SendInvoice').check();
    await tick('SyncInventory').check();
    await shown('SendInvoice%2CSyncInventory');
    const line = 'last \\d+, highest [1-9][\\d,]*';
    await me.find('figure', new RegExp(`^Jobs of each class per 15 min\\. SendInvoice: ${line}; SyncInventory: ${line}\\.`)).seen();
    await tick('SendInvoice').uncheck();
    await shown('%2CSyncInventory'); // which keeps its colour
    await me.find('figure', new RegExp(`^Jobs of each class per 15 min\\. SyncInventory: ${line}\\.`)).seen();
    await me.find('region', 'Throughput by class').find('button', 'All classes').click();
    await shown('');
    await me.find('figure', /^Jobs per 15 min\. succeeded: /).seen();
    await me.back();
    await me.find('region', 'Throughput by class').seen();
    assert.ok(await tick('SyncInventory').checked());
  });

  story(world, 'queues that are ticked have a line each', async (me) => {
    await me.go('Metrics');
    await me.find('button', '24h').click();
    await me.find('group', 'By').find('button', 'Queue').click();
    const queues = me.find('table', 'Queues');
    await queues.find('row', /inventory/).reads(/inventory [\d,]+ \d+(\.\d+)? %/);
    for (const name of ['inventory', 'mails']) await queues.find('checkbox', `Show ${name} in the chart`).check();
    await until('they are in the address', () => me.address() === '/job-metrics?range=24h&by=queue&show=inventory%2Cmails');
    const line = 'last \\d+, highest [1-9][\\d,]*';
    await me.find('figure', new RegExp(`^Jobs of each queue per 15 min\\. inventory: ${line}; mails: ${line}\\.`)).seen();
    await me.find('searchbox', 'Filter queues by name').fill('demo.low');
    await queues.find('row', /inventory/).gone();
    await me.find('region', 'Throughput by queue').find('button', 'All queues').click();
    await me.find('figure', /^Jobs per 15 min\. succeeded: /).seen();
    await queues.find('link', 'demo.low').click();
    await me.find('heading', /demo\.low$/, { level: 1 }).seen();
    assert.equal(me.address(), '/job-queues/demo.low?range=24h', 'the range goes along');
    await me.back();
    await me.find('group', 'By').find('button', 'Class').click();
    await me.find('table', 'Classes').find('link', 'SendInvoice').seen();
    assert.equal(me.address(), '/job-metrics?range=24h');
  });

  test('no more than eight classes are shown at the same time, with any names', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(`${world.base}/job-metrics?show=${['A%252CB', ...'CDEFGHIJ'].join(',')}`);
    await page.getByRole('figure', { name: /^Jobs of each class .*\. A,B: last 0, highest 0; C: .*; I: last 0, highest 0\.$/ }).waitFor();
    const tick = page.getByRole('checkbox', { name: 'Show SyncInventory in the chart' });
    await tick.waitFor();
    assert.ok(await tick.isDisabled());
    assert.equal(await tick.getAttribute('title'), 'At most 8 classes can be shown');
    await context.close();
  });

  story(world, 'a class is compared with the previous period', async (me) => {
    await me.go('Metrics');
    await me.find('button', '24h').click();
    await me.find('table', 'Classes').find('link', 'SendInvoice').click();
    await me.find('group', 'Range').find('button', '6h').click();
    const both = me.find('switch', 'Previous period');
    await both.check();
    await until('it is in the address', () => me.address() === '/job-metrics/SendInvoice?range=6h&compare=1');
    await me.find('figure', /^Run time\. p50 before: last .*; p95 before: last .*; p99 before: last .*; p50: last /).seen();
    await me.find('figure', /^Jobs per 5 min\. .*; jobs before: last \d+, highest [1-9]\d*\./).seen();
    await me.find('button', 'Table of Run time', { exact: true }).click();
    await me.find('table', 'Run time').find('columnheader', 'p95 before').seen();
    await both.uncheck();
    await me.find('figure', /^Run time\. p50: last /).seen();
    await me.find('region', 'Run time distribution').reads(/few many$/);
    assert.equal(me.address(), '/job-metrics/SendInvoice?range=6h');
  });
}
