// Every page in both themes: no errors on the console, no requests refused by the policy, no
// findings of axe, no overflow.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { overflow } from './boxes.js';
import { open, signIn } from './browser.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * The path, an element that shows that the page is ready, and the actions before that.
 * @type {[string, (p: any) => any, ((p: any) => Promise<any>)?][]}
 */
export const all = [
  ['/dashboard', (p) => p.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'archive' })],
  ['/job-queues', (p) => p.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'archive' })],
  ['/job-queues/demo.low', (p) => p.getByRole('table', { name: 'Classes of this queue' }).getByRole('link', { name: 'ResizeImage' })],
  ['/job-queues/archive', (p) => p.getByText('no workers consume this queue')],
  ['/scheduled-jobs', (p) => p.getByRole('link', { name: 'SendReminder' }).first()], ['/retries', (p) => p.getByRole('link', { name: 'Timeout' }).first()],
  ['/retries?view=storm', (p) => p.getByRole('rowheader', { name: /Timeout/ }).first()],
  ['/dead-jobs', (p) => p.getByRole('link', { name: 'SMTPAuthenticationError' }).first()],
  ['/gated-jobs', (p) => p.getByRole('link', { name: 'ImportCustomer' }).first()], ['/dead-jobs?queue=nothing-here', (p) => p.getByText(/No matches in [\d,]+ jobs/)],
  ['/periodic-jobs', (p) => p.getByRole('rowheader', { name: 'daily-report', exact: true })], ['/periodic-jobs/daily-report?tick=1', (p) => p.getByRole('cell', { name: 'skipped manually' })],
  ['/periodic-jobs/unknown-job', (p) => p.getByText('Periodic job not found')],
  ['/periodic-jobs/daily-report', (p) => p.getByRole('dialog').getByRole('listitem').first(), (p) => p.getByRole('button', { name: 'Change', exact: true }).click()],
  ['/limits', (p) => p.getByRole('rowheader', { name: 'imports-each', exact: true })], ['/limits/imports-each', (p) => p.getByRole('link', { name: 'import-1' })],
  ['/limits/unknown-limit', (p) => p.getByText('Limit not found')], ['/jobs/import-5', (p) => p.getByRole('region', { name: 'Why it waits' }).getByRole('link', { name: 'import-1' })],
  ['/limits/imports-each', (p) => p.getByRole('dialog').getByText(/waiting jobs held back/), (p) => p.getByRole('button', { name: 'Change', exact: true }).click()],
  ['/governed-queues', (p) => p.getByRole('rowheader', { name: 'imports', exact: true })], ['/governed-queues/uploads', (p) => p.getByText(/^As many jobs wait as may/)],
  ['/governed-queues/unknown-queue', (p) => p.getByText('Not a governed queue')], ['/unique-keys', (p) => p.getByRole('link', { name: 'reindex-1' })],
  ['/governed-queues/imports', (p) => p.getByRole('dialog').getByText('24 of 40 that may wait'), (p) => p.getByRole('button', { name: 'Change', exact: true }).click()],
  ['/jobs/order-4711', (p) => p.getByRole('region', { name: 'Unique key' })], ['/jobs/reindex-2', (p) => p.getByText(/^Not run: a duplicate of/)],
  ['/jobs/dead-invoice-1', (p) => p.getByRole('button', { name: 'Copy value of args[0].to' }), (p) =>
    p.getByRole('region', { name: 'the arguments' }).getByRole('listitem').last().focus()],
  ['/jobs/unknown-job', (p) => p.getByText('Job not found')], ['/job-metrics', (p) => p.getByRole('rowheader', { name: 'SyncInventory' })],
  ['/job-metrics/SendInvoice?range=6h', (p) => p.getByRole('figure', { name: /Run time/ }).or(p.getByText('p95').first()).first()],
  ['/worker-processes', (p) => p.getByRole('rowheader', { name: 'worker-2:822' })], ['/worker-processes/worker-2:822:shop', (p) => p.getByText('report-that-hangs')],
  ['/job-metrics?range=24h&show=SyncInventory,SendInvoice', (p) => p.getByRole('figure', { name: /^Jobs of each class.*SendInvoice: last/ })],
  ['/job-metrics/SendInvoice?range=6h&compare=1', (p) => p.getByRole('figure', { name: /p95 before: last/ })],
  ['/jobs', (p) => p.getByRole('table', { name: 'Running jobs' }).getByRole('link', { name: 'DailyReport' }).first()],
  ['/jobs?state=finished&status=failed&class=SyncInventory&since=86400', (p) => p.getByRole('table', { name: 'Recent runs' }).getByText('SyncInventory').first()],
  ['/jobs?state=dead-jobs', (p) => p.getByRole('table', { name: 'dead jobs' }).getByRole('link', { name: 'SendInvoice' }).first()],
  ['/jobs/report-that-hangs', (p) => p.getByRole('region', { name: 'Running' }).getByText(/× usual/)],
  ['/live', (p) => p.getByRole('log').getByRole('link').first()], ['/operations', (p) => p.getByRole('heading', { name: 'Operations', level: 1 })],
  ['/rejected', (p) => p.getByRole('cell', { name: 'not even JSON' })],
  ['/dead-jobs', (p) => p.getByRole('dialog').getByRole('button', { name: 'Delete 1 job' }), (p) =>
    p.getByRole('table', { name: 'dead jobs' }).getByRole('button', { name: /^Delete/ }).first().click()],
  ['/dead-jobs', (p) => p.getByRole('listbox', { name: 'Results' }).getByRole('option').first(), (p) => key(p, 'Control+k')],
  ['/dead-jobs', (p) => p.getByRole('dialog', { name: 'Keyboard shortcuts' }), (p) => key(p, '?')],
  ['/jobs/dead-invoice-1', (p) => p.getByRole('group', { name: 'Changes' }), (p) => edit(p, '[{"invoice": 1, "to": "bob@example.com"}]')],
  ['/jobs', (p) => p.getByRole('dialog').getByLabel('Due at'), schedule],
  ['/job-metrics/SendInvoice?range=6h', (p) => p.getByRole('table', { name: 'Run time' }).getByRole('row').nth(5), (p) => p.getByRole('button', { name: 'Table of Run time', exact: true }).click()],
  ['/scheduled-jobs', (p) => p.getByRole('table', { name: /^Scheduled jobs by due time/ }).getByRole('link').first(), (p) => p.getByRole('button', { name: /^Table of Scheduled jobs/ }).click()],
  ['/operations?tab=audit', (p) => p.getByRole('table', { name: 'Audit log' })],
  ['/health', (p) => p.getByRole('rowheader', { name: 'job_journal' })], ['/api-docs', (p) => p.getByText('/api/retries/{jid}/kill')],
];
async function edit(page, args) {
  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Arguments').fill(args);
}
/** Opens the whole dialog that enqueues a job. */
export async function schedule(page) {
  await page.getByRole('button', { name: 'Enqueue', exact: true }).click();
  await page.getByRole('dialog').getByText('More', { exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'At a time' }).click();
}
async function key(page, name) {
  await page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(1).waitFor();
  await page.keyboard.press(name);
}

/**
 * Returns the faults of the visible page.
 * @param {any} page
 * @param {string} path
 * @param {any} rules of axe
 */
export async function faultsOf(page, path, rules) {
  const wrong = (await page.evaluate(overflow)).map((/** @type {string} */ w) => `${path}: ${w}`);
  await page.evaluate(axe);
  const found = await page.evaluate((/** @type {any} */ rules) => window.axe.run(document, { resultTypes: ['violations'], ...rules }), rules);
  wrong.push(...found.violations.map((v) => `${path}: ${v.id}: ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message || '')).join(' | ')}`));
  wrong.push(...(await page.evaluate(() => window.refusals)).map((/** @type {string} */ r) => `${path}: refused by the policy: ${r}`));
  return wrong;
}

/** Answers that are errors by design, which browsers note on the console. */
const expected = /jobs\/unknown-job|limits\/unknown-limit|governed-queues\/unknown-queue|health\/checks/;

export function pages(world) {
  // Colours depend on the theme alone, and layout.js looks at each page at every width.
  for (const [theme, width] of [['light', 1440], ['dark', 768]]) {
    test(`every page, ${theme}, ${width} pixels wide`, async () => {
      const { page, context, faults } = await open(world.browser, { colorScheme: theme, viewport: { width, height: 900 } });
      const rules = theme === 'dark' ? { runOnly: ['color-contrast'] } : {};
      await page.goto(world.base + '/sign-in');
      await page.getByLabel('Password').waitFor();
      const wrong = [...faults.filter((f) => !f.includes('401')), ...await faultsOf(page, '/sign-in', rules)];
      await signIn(page, world.base);
      faults.length = 0; // the errors from before the sign-in
      for (const [path, there, act] of all) {
        await page.goto(world.base + path);
        await act?.(page);
        await there(page).waitFor();
        wrong.push(...await faultsOf(page, path, rules));
      }
      wrong.push(...faults.filter((f) => !expected.test(f)));
      assert.deepEqual(wrong, []);
      await context.close();
    });
  }

  test('where motion is to be reduced, a change of the theme animates nothing', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    const moving = await page.evaluate(() => {
      const was = getComputedStyle(document.body).color;
      document.documentElement.dataset.theme = 'dark';
      return { changed: getComputedStyle(document.body).color !== was, animations: document.getAnimations().length };
    });
    assert.deepEqual(moving, { changed: true, animations: 0 });
    await context.close();
  });
}
