// Writes docs/screenshots: each page in both themes.
import { mkdir } from 'node:fs/promises';
import { launch, open, signIn } from './browser.js';
import { beat, seed } from './seed.js';
import { start } from './sidecar.js';

const into = process.env.SCREENSHOTS || new URL('../../docs/screenshots/', import.meta.url).pathname;
export const pages = {
  dashboard: '/job-queues?range=24h', queue: '/job-queues/mails?range=24h', scheduled: '/scheduled-jobs', retries: '/retries', 'retries-by-error': '/retries?view=storm', dead: '/dead-jobs', job: '/jobs/dead-invoice-1', metrics: '/job-metrics?range=24h',
  class: '/job-metrics/SendInvoice?range=6h', processes: '/worker-processes', process: '/worker-processes/worker-2:822:shop', live: '/live', operations: '/operations', rejected: '/rejected', health: '/health', 'api-docs': '/api-docs',
};

/** Some things to see that come of acting. */
async function act(page) {
  await page.getByRole('link', { name: 'Dead', exact: false }).first().click();
  await page.getByRole('row').nth(1).getByRole('checkbox').check();
  await page.getByRole('row').nth(2).getByRole('checkbox').check();
  await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Retry now' }).click();
  await page.getByLabel('Reason').fill('the mail server is back');
  await page.getByRole('button', { name: 'Retry 2 dead jobs' }).click();
  await page.getByText('done', { exact: true }).first().waitFor();
}

async function shoot(browser, base, theme, width, first) {
  const { page, context } = await open(browser, { colorScheme: theme, viewport: { width, height: 900 }, deviceScaleFactor: 1 });
  const save = (name) => page.screenshot({ path: `${into}/${name}-${theme}${width === 1440 ? '' : '-' + width}.png` });
  await page.goto(base + '/sign-in');
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  await save('sign-in');
  await signIn(page, base);
  if (first) await act(page);
  const only = process.env.ONLY?.split(',');
  for (const [name, path] of Object.entries(pages)) {
    if (only && !only.includes(name)) continue;
    await page.goto(base + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForFunction(() => !document.querySelector('tr.sk') && document.querySelector('main tbody tr, main .facts, main .ops, main .feed a'));
    await page.waitForTimeout(name === 'live' ? 3000 : 1200);
    await save(name);
  }
  await context.close();
}

const sidecar = await start({ rate: 12 });
const browser = await launch();
try {
  await mkdir(into, { recursive: true });
  const { publish } = await seed(sidecar);
  const hearts = beat(publish);
  await hearts.first;
  const widths = (process.env.WIDTHS || '1440').split(',').map(Number);
  let first = true;
  for (const width of widths) {
    for (const theme of (process.env.THEMES || 'light,dark').split(',')) {
      await shoot(browser, sidecar.base, theme, width, first);
      first = false;
    }
  }
  hearts.stop();
} finally {
  await browser.close();
  await sidecar.stop();
}
