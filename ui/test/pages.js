// Every page in both themes: nothing on the console, nothing refused by the policy, nothing that axe finds, nothing that overflows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { overflow } from './boxes.js';
import { open, signIn } from './browser.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Path, and what is seen when the page is there. */
const all = [
  ['/job-queues', (p) => p.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'archive' })], ['/job-queues/low', (p) => p.getByRole('table', { name: 'Classes of this queue' }).getByRole('link', { name: 'ResizeImage' })],
  ['/job-queues/archive', (p) => p.getByText('nobody consumes this queue')], ['/scheduled-jobs', (p) => p.getByRole('link', { name: 'SendReminder' }).first()], ['/retries', (p) => p.getByRole('link', { name: 'Timeout' }).first()],
  ['/retries?view=storm', (p) => p.getByRole('rowheader', { name: /Timeout/ }).first()], ['/dead-jobs', (p) => p.getByRole('link', { name: 'SMTPAuthenticationError' }).first()], ['/dead-jobs?queue=nothing-here', (p) => p.getByText(/0 of \d+ match/)],
  ['/jobs/dead-invoice-1', (p) => p.getByRole('region', { name: 'the record' })], ['/jobs/nobody-knows-it', (p) => p.getByText('Nothing is known of this job')], ['/job-metrics', (p) => p.getByRole('rowheader', { name: 'SyncInventory' })],
  ['/job-metrics/SendInvoice?range=6h', (p) => p.getByRole('figure', { name: /Run time/ }).or(p.getByText('p95').first()).first()], ['/worker-processes', (p) => p.getByRole('rowheader', { name: 'worker-2:822' })], ['/worker-processes/worker-2:822:shop', (p) => p.getByText('report-that-hangs')],
  ['/live', (p) => p.getByRole('log').getByRole('link').first()], ['/operations', (p) => p.getByRole('heading', { name: 'Operations', level: 1 })], ['/rejected', (p) => p.getByRole('cell', { name: 'not even JSON' })],
  ['/health', (p) => p.getByRole('rowheader', { name: 'job_journal' })], ['/api-docs', (p) => p.getByText('/api/retries/{jid}/kill')],
];
/** Answers that are errors by design, which browsers note on the console. */
const expected = /jobs\/nobody-knows-it|health\/checks/;

export function pages(world) {
  for (const [theme, width] of [['light', 1440], ['dark', 1440], ['light', 768], ['dark', 768]]) {
    test(`every page, ${theme}, ${width} pixels wide`, async () => {
      const { page, context, faults } = await open(world.browser, { colorScheme: theme, viewport: { width, height: 900 } });
      await signIn(page, world.base);
      faults.length = 0; // that nobody was signed in
      const wrong = [];
      for (const [path, there] of all) {
        await page.goto(world.base + path);
        await there(page).waitFor();
        wrong.push(...(await page.evaluate(overflow)).map((w) => `${path}: ${w}`));
        await page.evaluate(axe);
        const found = await page.evaluate((rules) => window.axe.run(document, { resultTypes: ['violations'], ...rules }), theme === 'dark' || width < 1440 ? { runOnly: ['color-contrast'] } : {});
        wrong.push(...found.violations.map((v) => `${path}: ${v.id}: ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message || '')).join(' | ')}`));
        wrong.push(...(await page.evaluate(() => window.refusals)).map((r) => `${path}: refused by the policy: ${r}`));
      }
      wrong.push(...faults.filter((f) => !expected.test(f)));
      assert.deepEqual(wrong, []);
      await context.close();
    });
  }
}
