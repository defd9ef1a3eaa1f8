// Writes docs/screenshots: each page in both themes. It uses the virtual host of a small shop, with
// a worker for its jobs. For a look at the pages:
//
//   SCREENSHOTS=DIR WIDTHS=1700,390 THEMES=light ONLY=queue,jobs WHOLE=1 FIREFOX=1
//
// WHOLE is the page below the window too. FIREFOX adds pictures in Firefox, in its own theme.
import { mkdir, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { launchFirefox } from './bidi.js';
import { launch, open, signIn } from './browser.js';
import { beat, dice, seed } from './seed.js';
import { http, serve, start, virtualHost, work } from './sidecar.js';

const into = process.env.SCREENSHOTS || new URL('../../docs/screenshots/', import.meta.url).pathname;
const pages = {
  dashboard: '/dashboard?range=24h', queues: '/job-queues', queue: '/job-queues/mails?range=24h', scheduled: '/scheduled-jobs',
  periodic: '/periodic-jobs', 'periodic-job': '/periodic-jobs/daily-report', limits: '/limits', limit: '/limits/imports-each',
  'governed-queues': '/governed-queues', 'governed-queue': '/governed-queues/imports', 'unique-keys': '/unique-keys', retries: '/retries',
  'retries-by-error': '/retries?view=storm', dead: '/dead-jobs', jobs: '/jobs', job: '/jobs/dead-invoice-1', metrics: '/job-metrics?range=24h',
  class: '/job-metrics/SendInvoice?range=6h', processes: '/worker-processes', process: '/worker-processes/worker-2:822:shop',
  operations: '/operations', rejected: '/rejected', health: '/health', 'api-docs': '/api-docs', live: '/live',
};
/** Those that are not in docs/screenshots. */
const others = {
  gated: '/gated-jobs', 'job-waits': '/jobs/import-5', 'governed-full': '/governed-queues/uploads', duplicate: '/jobs/reindex-2', 'unique-job': '/jobs/order-4711',
  'dead-by-error': '/dead-jobs?view=storm', 'runs-recent': '/jobs?state=finished', 'queue-stuck': '/job-queues/archive', 'queue-jobs': '/job-queues/archive?tab=jobs',
  'queue-workers': '/job-queues/mails?tab=workers', 'job-running': '/jobs/report-that-hangs', 'job-unknown': '/jobs/unknown', ticked: '/job-metrics?range=24h&show=SyncInventory,SendInvoice',
  message: '/jobs/order-unpaid-7005', compared: '/job-metrics/SendInvoice?range=6h&compare=1', audit: '/operations?tab=audit',
};
if (process.env.SCREENSHOTS) Object.assign(pages, others);
const whole = !!process.env.WHOLE;
const only = process.env.ONLY?.split(',');
const widths = (process.env.WIDTHS || '1440').split(',').map(Number);
const themes = (process.env.THEMES || 'light,dark').split(',');

/** Class, queue, and the duration of a job in seconds. */
const kinds = [['SendInvoice', 'mails', 0.3], ['SyncInventory', 'inventory', 0.9], ['ChargeCard', 'critical', 0.2], ['SendReminder', 'mails', 0.2],
  ['ResizeImage', 'low', 0.1], ['DailyReport', 'reports', 4]];
/** One in four fails. */
const sometimes = '[ $((1$(date +%N | tail -c 3) % 4)) != 0 ] || { echo "81 megapixels are too many" >&2; exit 65; }';
const plan = ['queues: {critical: 5, mails: 2, inventory: 1, reports: 1, low: 1}', 'concurrency: 10', 'classes:',
  ...kinds.map(([name, , takes]) => `  ${name}: {shell: 'sleep ${takes}${name === 'ResizeImage' ? '; ' + sometimes : ''}'}`)];

/**
 * Class, queue, error class, message and arguments of jobs that are retried soon.
 * @type {((n: number) => string[])[]}
 */
const failing = [
  (n) => ['ResizeImage', 'low', 'ImageTooLarge', `photo-${4000 + n}.jpg has ${60 + n % 40} megapixels`, `photo-${4000 + n}.jpg`],
  (n) => ['ChargeCard', 'critical', 'CardDeclined', 'the bank refused: insufficient funds', `order-${7000 + n}`],
  (n) => ['SyncInventory', 'inventory', 'Timeout', `no answer from 10.0.3.${n % 20} within ${3000 + n} ms`, `warehouse-${n % 7}`],
];

/**
 * The remains of the last week: dead jobs, and some retries that are due soon and that the worker
 * will run.
 */
async function past(publish) {
  const now = Date.now() / 1000;
  const random = dice(11);
  const deaths = [];
  for (let hour = 26; hour < 7 * 24; hour++) {
    for (let i = Math.floor(6 * random() ** 2); i > 0; i--) {
      const [name, queue] = kinds[Math.floor(random() * kinds.length)];
      deaths.push({ type: 'job_metric', timestamp: now - 3600 * (hour + random()), job_class: name, queue, duration_ms: 700, status: 'dead',
        worker_identity: 'worker-1:4711:shop', wait_ms: 40, attempt: 11, error_class: 'Timeout' });
    }
  }
  await publish('job_metrics', deaths);
  for (let i = 0; i < 48; i++) {
    const [name, queue, error_class, error_message, about] = failing[Math.floor(3 * random() ** 0.7)](Math.floor(400 * random()));
    const jid = `9a${Math.floor(2 ** 24 * random()).toString(16).padStart(6, '0')}c0ffee5eed`;
    const retry_count = 1 + Math.floor(3 * random());
    await publish('retries', { type: 'retry', jid, retry_at: now + 400 + 1600 * random(), retry_count, failed_at: now - 120 * random(), error_class,
      error_message, job: { jid, class: name, queue, args: [about], retry: 10, retry_count, enqueued_at: now - 900 } });
  }
}

const any = dice(5);
/** Publishes some jobs, one after the other. */
async function some(base, n) {
  for (let i = 0; i < n; i++) {
    const [name, queue] = kinds[Math.floor(any() * kinds.length)];
    await http(`${base}/api/jobs`, 'POST', { class: name, queue, args: [Math.floor(9000 * any())] });
  }
}

/**
 * The results of some actions: three operations, one of which was undone and one of which still
 * runs.
 */
async function act(page) {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Dead' }).click();
  const many = async (cls, action, verb, reason, minutes) => {
    await page.getByRole('combobox', { name: /^Filter/ }).fill('class:' + cls);
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: 'dead jobs' }).getByRole('link', { name: cls }).first().waitFor();
    await page.getByText(/of \d\d matching/).waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    const bar = page.getByRole('region', { name: 'Selection' });
    if (minutes) await bar.getByRole('button', { name: /^Select all \d+ matching/ }).click();
    await bar.getByRole('button', { name: action }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill(reason);
    if (minutes) await dialog.getByLabel('Spread over minutes').fill(minutes);
    await dialog.getByRole('button', { name: new RegExp(`^${verb} \\d+`) }).click();
    return page.getByRole('group', { name: new RegExp(`^${verb} \\d+ dead jobs`) }).last();
  };
  const deletion = await many('ImportUsers', 'Delete', 'Delete', 'imported by hand');
  await deletion.getByText('done', { exact: true }).waitFor();
  await deletion.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('group', { name: /^(Undo|Restored) \d+ dead jobs/ }).getByText('done', { exact: true }).waitFor();
  const retry = await many('SyncInventory', 'Retry now', 'Retry', 'the warehouse answers again', '15');
  await retry.getByText(/^[1-9]\d* of \d+ done/).waitFor();
}

/** Runs in the page: whether it shows what it is about. */
const ready = () => !document.querySelector('tr.sk') && !!document.querySelector('main :is(tbody tr, .facts, .ops, .feed a, .empty, [role=tabpanel] .btn)');

async function shoot(browser, base, theme, width, names, first) {
  const { page, context } = await open(browser, { colorScheme: theme, viewport: { width, height: 900 }, deviceScaleFactor: 1 });
  const save = (name) => page.screenshot({ fullPage: whole, path: `${into}/${name}-${theme}${width === 1440 ? '' : '-' + width}.png` });
  await page.goto(base + '/sign-in');
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  if (names.includes('dashboard')) await save('sign-in');
  await signIn(page, base);
  if (first) await act(page);
  for (const name of names) {
    if (only && !only.includes(name)) continue;
    await page.goto(base + pages[name]);
    await page.getByRole('heading', { level: 1 }).waitFor();
    if (name === 'live') await some(base, 24);
    await page.waitForFunction(ready);
    await page.waitForTimeout(name === 'live' ? 4000 : 1200);
    await save(name);
  }
  await context.close();
}

/** Pictures of all pages in Firefox. */
async function inFirefox(base) {
  const page = await launchFirefox();
  try {
    await page.goto(base + '/sign-in');
    for (const field of ['Name', 'Password']) await page.fill(field, 'guest');
    await page.click({ role: 'button', name: 'Sign in' });
    await page.shows('the dashboard', () => document.querySelector('h1')?.textContent === 'Dashboard');
    for (const [name, path] of Object.entries(pages)) {
      if (only && !only.includes(name)) continue;
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(base + path);
        await page.shows(path, ready);
        await sleep(1200);
        await writeFile(`${into}/${name}-firefox-${width}.png`, await page.screenshot(whole));
      }
    }
  } finally {
    await page.close();
  }
}

const up = await start({ rate: 1 });
const ends = [() => up.stop()];
try {
  await mkdir(into, { recursive: true });
  await virtualHost(up, 'shop');
  const sidecar = await serve(up, 'shop', []);
  ends.push(() => sidecar.end());
  const base = `http://127.0.0.1:${sidecar.port}`;
  const { publish } = await seed({ base, management: up.management, vhost: 'shop' }, 4);
  await past(publish);
  const hearts = beat(publish);
  ends.push(() => hearts.stop());
  await hearts.first;
  const worker = await work(up, 'shop', 'mailer', plan);
  ends.push(() => worker.stop());
  const timer = setInterval(() => { some(base, 1).catch(() => {}); }, 2500);
  ends.push(() => clearInterval(timer));
  await some(base, 12);
  const browser = await launch();
  ends.push(() => browser.close());
  let first = true;
  // The live page is last: it needs traffic, which would show in the charts.
  for (const names of [Object.keys(pages).filter((n) => n !== 'live'), ['live']]) {
    for (const width of widths) {
      for (const theme of themes) {
        await shoot(browser, base, theme, width, names, first);
        first = false;
      }
    }
  }
  if (process.env.FIREFOX) await inFirefox(base);
} finally {
  for (const end of ends.reverse()) await end();
}
