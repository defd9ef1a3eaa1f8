// A sidecar beside an empty virtual host, under a prefix and behind a proxy: what pages say where nothing is, and what they do when it starts anew.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, open, signIn } from './browser.js';
import { faultsOf } from './pages.js';
import { proxy } from './proxy.js';
import { http, serve, until, virtualHost } from './sidecar.js';

const prefix = '/ops/jobs';

/** What each page says where nothing is. */
const said = {
  '/job-queues': 'No queues yet', '/scheduled-jobs': 'Nothing is scheduled', '/retries': 'Nothing waits for a retry', '/retries?view=storm': 'No errors', '/dead-jobs': 'Nothing is dead', '/dead-jobs?view=storm': 'No errors',
  '/job-metrics': 'No job has run in this time', '/job-metrics/Nobody': 'It has not run in this time', '/worker-processes': 'No worker has been heard', '/live': 'Nothing has run yet', '/operations': 'Nobody has done anything to many jobs at once', '/operations?tab=audit': 'Nothing that matches was done',
  '/rejected': 'Nothing was rejected', '/health': 'A sidecar leads and answers', '/api-docs': '/api/retries/{jid}/kill', '/job-queues/missing': 'there is no queue', '/jobs/missing': 'Job not found', '/jobs': 'No jobs are running', '/jobs?state=finished': 'No runs yet', '/jobs?state=retries': 'No retries', '/worker-processes/missing': 'Not there',
};
/** Answers that are errors by design, which browsers note on the console: no such thing, and no worker. */
const expected = /missing|health\/checks\/workers/;

export function empty(world) {
  test('empty pages, under a prefix behind a proxy, in an environment with a name', async () => {
    await virtualHost(world, 'empty');
    const sidecar = await serve(world, 'empty', ['--http-prefix', prefix, '--environment', 'staging']);
    const front = await proxy(sidecar.port);
    const base = `http://127.0.0.1:${front.port}${prefix}`;
    try {
      for (const [colorScheme, width] of [['light', 768], ['dark', 1440]]) await look(world, base, { colorScheme, viewport: { width, height: 900 } });
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
  faults.length = 0; // that nobody was signed in
  for (const [path, text] of Object.entries(said)) {
    await page.goto(base + path);
    await page.getByRole('main').getByText(text).first().waitFor();
    wrong.push(...await faultsOf(page, path, {}));
  }
  wrong.push(...faults.filter((f) => !expected.test(f)), ...[...asked].filter((url) => url !== base + '/').map((url) => 'asked for elsewhere: ' + url));
  assert.deepEqual(wrong, []);
  await context.close();
}

/** The sidecar ends and comes back: nobody has to do anything. */
async function restart(world, base, sidecar) {
  const { page, context } = await open(world.browser);
  await signIn(page, base);
  await go(page, 'Scheduled');
  await page.getByText('Nothing is scheduled').waitFor();
  await sidecar.stop();
  await page.getByRole('alert').filter({ hasText: 'out of reach' }).first().waitFor();
  await sidecar.begin();
  await page.getByRole('alert').filter({ hasText: 'out of reach' }).first().waitFor({ state: 'detached', timeout: 90_000 });
  await until('it leads again', async () => (await http(base + '/api/overview')).scheduler.leader);
  await http(base + '/api/jobs', 'POST', { class: 'AfterTheRestart', queue: 'later', args: [], at: Date.now() / 1000 + 9000 });
  await page.getByRole('link', { name: 'AfterTheRestart' }).waitFor({ timeout: 60_000 });
  await context.close();
}
