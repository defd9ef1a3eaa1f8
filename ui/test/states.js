// Pages in unusual states: errors, refusals, filters without matches, a view that lags.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, open, signIn } from './browser.js';
import { overflow } from './boxes.js';

const reason = 'the broker does not report this now';
const pages = ['/dashboard', '/job-queues', '/job-queues/mails', '/scheduled-jobs', '/retries', '/retries?view=storm', '/dead-jobs', '/gated-jobs',
  '/jobs', '/jobs?state=finished', '/jobs/dead-invoice-1', '/job-metrics', '/job-metrics/SendInvoice', '/worker-processes',
  '/worker-processes/worker-2:822:shop', '/operations', '/operations?tab=audit', '/job-queues/mails?tab=workers', '/rejected', '/health'];
/** The texts of empty lists. A page must not show them for a request that failed. */
const none = /^(No (queues|errors|jobs|workers|running|runs|retries|dead|scheduled|rejected|matching|matches|bulk|issues|data|failed|recent|actions)|Idle|Workers reported no)\b/;
/** Filters without matches, and the texts that they show. */
const nothing = { '/job-queues?text=zzz': /No matches in \d+ queues/, '/scheduled-jobs?class=Zzz': /No matches in [\d,]+ jobs/,
  '/retries?queue=zzz': /No matches in [\d,]+ jobs/, '/dead-jobs?error=Zzz': /No matches in [\d,]+ jobs/,
  '/gated-jobs?class=Zzz': /No matches in \d+ jobs/, '/jobs?class=zzz': /No matches in \d+ jobs/,
  '/jobs?state=finished&class=zzz': 'No matching runs', '/job-metrics?text=zzz': 'No matching classes',
  '/worker-processes?text=zzz': /No matches in \d+ processes/, '/live?text=zzz': 'No matching runs' };

export function states(world) {
  for (const [colorScheme, width] of [['light', 1440], ['dark', 768]]) {
    test(`every page while the API fails, ${colorScheme}, ${width} pixels wide`, async () => {
      const { page, context, faults } = await open(world.browser, { colorScheme, viewport: { width, height: 900 } });
      await signIn(page, world.base);
      await page.route(/\/api\/(?!whoami|session|events)/, (route) =>
        route.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ error: 'service_unavailable', reason, request_id: 'REQUEST-1' }) }));
      const wrong = [];
      for (const path of pages) {
        await page.goto(world.base + path);
        await page.getByRole('main').getByText(reason).first().waitFor();
        wrong.push(...(await page.getByRole('main').getByText(none).allInnerTexts()).map((text) => `${path}: “${text}”, which is not known`));
        if (await page.locator('dl.counters:empty').count()) wrong.push(`${path}: an empty card`);
        wrong.push(...(await page.evaluate(overflow)).map((w) => `${path}: ${w}`));
      }
      await page.goto(world.base + '/dead-jobs');
      await page.getByRole('alert').filter({ hasText: 'REQUEST-1' }).first().waitFor();
      // Otherwise it is tried again automatically.
      await page.getByRole('button', { name: 'Live updates' }).click();
      await page.unroute(/\/api\/(?!whoami|session|events)/);
      await page.getByRole('region', { name: 'dead jobs' }).getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(3).waitFor();
      assert.deepEqual([...wrong, ...faults.filter((f) => f.startsWith('error'))], []);
      await context.close();
    });
  }

  test('a chart says whether its figures are on their way, could not be read, or are none', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    const charts = [['/dashboard', 'Throughput', 'job-metrics'], ['/dashboard', 'Due', 'due-times'], ['/dead-jobs', 'Died per hour (7 days)', 'job-metrics']];
    for (const [path, name, route] of charts) {
      const chart = page.getByRole('region', { name, exact: true }).getByRole('figure');
      await page.route(`**/api/${route}*`, () => {}); // the answer never comes
      await page.goto(world.base + path);
      await chart.filter({ hasText: 'Loading' }).waitFor();
      assert.doesNotMatch(await chart.innerText(), /No data in this range|0 jobs are due/);
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.route(`**/api/${route}*`, (r) => r.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ error: 'service_unavailable', reason, request_id: 'R' }) }));
      await page.goto(world.base + path);
      await page.getByRole('main').getByText(reason).first().waitFor();
      // A chart that shares its answer with a whole page is replaced by the error.
      if (name === 'Throughput') assert.equal(await chart.count(), 0);
      else await chart.filter({ hasText: 'Could not be loaded' }).waitFor();
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.goto(world.base + path);
      await chart.getByRole('button', { name: /^Table of/ }).waitFor();
    }
    await context.close();
  });

  test('nothing that matches', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    for (const [path, text] of Object.entries(nothing)) {
      await page.goto(world.base + path);
      await page.getByRole('main').getByText(text).first().waitFor();
    }
    await page.goto(world.base + '/scheduled-jobs?class=Zzz');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.getByRole('link', { name: 'SendReminder' }).first().waitFor();
    await context.close();
  });

  test('what one may not see is said to be so', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.route('**/api/retries?*', (route) => route.fulfill({ status: 403, contentType: 'application/json',
      body: JSON.stringify({ error: 'access_refused', reason: 'that needs the tag monitoring', request_id: 'R' }) }));
    await go(page, 'Retries');
    const alert = page.getByRole('alert').filter({ hasText: 'No permission' });
    await alert.getByText('that needs the tag monitoring').waitFor();
    await context.close();
  });

  test('a view that is behind says so, and one that is being read takes no actions on many jobs', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.routeWebSocket(/\/api\/events/, () => {}); // it would report the state
    let change = (o) => o;
    await page.route('**/api/overview', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: change(await answer.json()) });
    });
    for (const seconds of [12, 90]) {
      change = (o) => ({ ...o, views: { ...o.views, lag_seconds: seconds } });
      await page.goto(world.base + '/scheduled-jobs');
      await page.getByRole('banner').getByText(/behind/).waitFor();
    }
    change = (o) => ({ ...o, views: { ...o.views, caught_up: false } });
    await page.goto(world.base + '/scheduled-jobs');
    await page.getByRole('status').filter({ hasText: 'is reading its streams' }).waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: /^Select all \d+ matching/ }).click();
    const bar = page.getByRole('region', { name: 'Selection' });
    assert.ok(await bar.getByRole('button', { name: 'Delete' }).isDisabled());
    await bar.getByRole('button', { name: 'Clear' }).click();
    for (const n of [1, 2]) await page.getByRole('table', { name: 'scheduled jobs' }).getByRole('checkbox').nth(n).check();
    await bar.getByText('2 jobs selected').waitFor();
    for (const name of ['Run now', 'Reschedule', 'Kill', 'Delete']) assert.ok(await bar.getByRole('button', { name }).isDisabled());
    await page.goto(world.base + '/dead-jobs?view=storm');
    const group = page.getByRole('table', { name: 'Errors' }).getByRole('button', { name: /^Retry now all/, disabled: true }).first();
    await group.waitFor();
    assert.match(await group.getAttribute('title'), /bulk actions are disabled/);
    change = (o) => ({ ...o, scheduler: { ...o.scheduler, phase: 'settling' } });
    await page.goto(world.base + '/health');
    const leader = page.getByRole('region', { name: 'Broker and leader' });
    await leader.getByText('(reconciling)').waitFor();
    assert.match((await leader.innerText()).replace(/\s+/g, ' '), /Clock skew none/);
    await page.getByRole('region', { name: 'Since start' }).getByText('jobs sent to their queues').waitFor();
    change = (o) => ({ ...o, broker: { ...o.broker, connected: false } });
    await page.goto(world.base + '/job-metrics');
    await page.getByRole('alert').filter({ hasText: 'lost its connection to the broker' }).waitFor();
    await context.close();
  });
}
