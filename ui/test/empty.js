// A sidecar with an empty virtual host, under a prefix and behind a proxy: the texts of empty
// pages, a change where there are no others, and a restart.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, open, signIn } from './browser.js';
import { faultsOf } from './pages.js';
import { proxy } from './proxy.js';
import { http, serve, until, virtualHost } from './sidecar.js';

const prefix = '/ops/jobs';

/** The text of each empty page. */
const said = {
  '/dashboard': 'No queues yet', '/job-queues': 'No queues yet', '/scheduled-jobs': 'No scheduled jobs', '/retries': 'No retries',
  '/governed-queues': 'No governed queues yet', '/governed-queues/missing': 'Not a governed queue', '/unique-keys': 'No job has a unique key',
  '/limits': 'No limits yet', '/limits/missing': 'Limit not found', '/periodic-jobs': 'No periodic jobs yet', '/periodic-jobs/missing': 'Periodic job not found',
  '/retries?view=storm': 'No errors', '/dead-jobs': 'No dead jobs', '/dead-jobs?view=storm': 'No errors', '/gated-jobs': 'No blocked jobs',
  '/job-metrics': 'No jobs ran in this range', '/job-metrics/NeverRan': 'No jobs of this class ran in this range',
  '/worker-processes': 'No workers connected', '/live': 'No runs yet', '/operations': 'No bulk operations yet', '/operations?tab=audit': 'No actions yet',
  '/rejected': 'No rejected records', '/health': 'Leader responding', '/api-docs': '/api/retries/{jid}/kill',
  '/job-queues/missing': 'there is no queue', '/jobs/missing': 'Job not found', '/jobs': 'No jobs are running', '/jobs?state=finished': 'No runs yet',
  '/jobs?state=retries': 'No retries', '/worker-processes/missing': 'Not found', '/nothing/here': 'Page not found', '/retries/x': 'Page not found',
};
/**
 * Answers that are errors by design, which browsers note on the console: missing things, and no
 * worker.
 */
const expected = /missing|nothing\/here|retries\/x|health\/checks\/workers/;

export function empty(world) {
  test('empty pages, under a prefix behind a proxy, in an environment with a name', async () => {
    await virtualHost(world, 'empty');
    const sidecar = await serve(world, 'empty', ['--http-prefix', prefix, '--environment', 'staging']);
    const front = await proxy(sidecar.port);
    const base = `http://127.0.0.1:${front.port}${prefix}`;
    try {
      for (const [colorScheme, width] of [['light', 768], ['dark', 1440]]) await look(world, base, { colorScheme, viewport: { width, height: 900 } });
      await meanwhile(world, base);
      await restart(world, base, sidecar);
    } finally {
      front.stop();
      await sidecar.end();
    }
  });
}

async function look(world, base, options) {
  const { page, context, faults } = await open(world.browser, options);
  const asked = new Set();
  page.on('request', (r) => { if (!r.url().startsWith('blob:')) asked.add(r.url().slice(0, base.length + 1)); });
  await page.goto(base + '/sign-in');
  await page.getByLabel('Password').waitFor();
  const wrong = await faultsOf(page, '/sign-in', {});
  await signIn(page, base);
  await page.getByText('staging').waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(await page.getByRole('banner').getByText('staging').isVisible(), 'the environment is named on a phone too');
  await page.setViewportSize(options.viewport);
  faults.length = 0; // the errors from before the sign-in
  for (const [path, text] of Object.entries(said)) {
    await page.goto(base + path);
    await page.getByRole('main').getByText(text).first().waitFor();
    const charts = page.getByRole('figure');
    if (path === '/dashboard') await until('there are no empty charts', async () => await charts.count() === 0);
    if (path === '/job-metrics') await until('empty charts are small', () => charts.evaluateAll((all) => all.length > 0 && all.every((chart) => chart.getBoundingClientRect().height < 120)));
    wrong.push(...await faultsOf(page, path, {}));
  }
  wrong.push(...faults.filter((f) => !expected.test(f)), ...[...asked].filter((url) => url !== base + '/').map((url) => 'asked for elsewhere: ' + url));
  assert.deepEqual(wrong, []);
  await context.close();
}

/** A change during a request is on the page soon, and not with the next poll. */
async function meanwhile(world, base) {
  const { page, context } = await open(world.browser);
  const frames = [];
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => frames.push(JSON.parse(String(payload)))));
  await signIn(page, base);
  await until('events come', () => frames.length > 0);
  await page.route('**/api/scheduled-jobs?*', async (route) => {
    const response = await route.fetch();
    const before = frames.length;
    await http(base + '/api/jobs', 'POST', { class: 'Meanwhile', queue: 'later', args: [], at: Date.now() / 1000 + 9000 });
    await until('the change is announced', () => frames.slice(before).some(({ data }) => (typeof data === 'string' ? JSON.parse(data) : data)?.scheduled));
    await route.fulfill({ response });
  }, { times: 1 });
  await go(page, 'Scheduled');
  await page.getByRole('link', { name: 'Meanwhile' }).waitFor({ timeout: 20_000 });
  const [{ jid }] = (await http(base + '/api/scheduled-jobs?page=1')).items;
  await http(`${base}/api/scheduled-jobs/${jid}`, 'DELETE');
  await context.close();
}

/** The sidecar stops and comes back. The user need not do anything. */
async function restart(world, base, sidecar) {
  const { page, context } = await open(world.browser);
  await signIn(page, base);
  await go(page, 'Scheduled');
  await page.getByText('No scheduled jobs').waitFor();
  await sidecar.stop();
  await page.getByRole('alert').filter({ hasText: "Can't reach Millrace" }).first().waitFor();
  await sidecar.begin();
  await page.getByRole('alert').filter({ hasText: "Can't reach Millrace" }).first().waitFor({ state: 'detached', timeout: 90_000 });
  await until('it leads again', async () => (await http(base + '/api/overview')).scheduler.leader);
  await http(base + '/api/jobs', 'POST', { class: 'AfterTheRestart', queue: 'later', args: [], at: Date.now() / 1000 + 9000 });
  await page.getByRole('link', { name: 'AfterTheRestart' }).waitFor({ timeout: 60_000 });
  await context.close();
}
