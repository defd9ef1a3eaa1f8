// Who may sign in, and what each user sees.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, open, signIn } from './browser.js';
import { plant } from './actions.js';
import { proxy } from './proxy.js';
import { http, until } from './sidecar.js';

/** Buttons that a user with read access must not have. The pages have them for other users. */
const acts = /^(Enqueue|Pause|Resume|Move|Purge|Delete|Peek|Run now|Run a copy|Retry|Kill|Change|Reschedule|Undo|Stop|Quiet|Fix|Dismiss|Release|Discard|Define|Skip|Remove|Free)\b/;
/** @type {[string, (main: any) => any][]} */
const watched = [['/job-queues/archive', (m) => m.getByText('no workers consume this queue')],
  ['/job-queues', (m) => m.getByRole('link', { name: 'archive' })], ['/jobs', (m) => m.getByRole('link', { name: 'DailyReport' }).first()],
  ['/job-queues/archive?tab=jobs', (m) => m.getByRole('button', { name: 'Peek 20' })], ['/jobs/dead-invoice-1', (m) => m.getByRole('button', { name: 'Show the record' })],
  ['/retries?view=storm', (m) => m.getByRole('rowheader', { name: /Timeout/ }).first()],
  ['/dead-jobs?view=storm', (m) => m.getByRole('rowheader', { name: /Timeout/ }).first()], ['/operations', (m) => m.getByRole('table', { name: 'Operations' })],
  ['/periodic-jobs', (m) => m.getByRole('rowheader', { name: 'daily-report', exact: true })], ['/periodic-jobs/daily-report', (m) => m.getByRole('cell', { name: 'skipped manually' })],
  ['/limits', (m) => m.getByRole('rowheader', { name: 'imports-each', exact: true })], ['/limits/imports-each', (m) => m.getByRole('link', { name: 'import-1' })],
  ['/rejected', (m) => m.getByRole('cell', { name: 'not even JSON' })],
  ['/worker-processes/worker-2:822:shop', (m) => m.getByText('report-that-hangs')], ['/scheduled-jobs', (m) => m.getByRole('table', { name: 'scheduled jobs' }).getByRole('row').nth(3)]];

export function people(world) {
  test('a wrong password is reported, a right one leads to the requested page', async () => {
    const { page, context } = await open(world.browser);
    await page.goto(world.base + '/retries?queue=inventory');
    await page.getByLabel('Name').fill('guest');
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Password').fill('guest');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Retries', level: 1 }).waitFor();
    assert.match(page.url(), /\/retries\?queue=inventory$/);
    await page.getByRole('button', { name: 'Menu of guest' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Password').waitFor();
    await context.close();
  });

  test('who may only look sees no way to act', async () => {
    const { page, context, faults } = await open(world.browser);
    await signIn(page, world.base, 'watcher', 'watches');
    await go(page, 'Dead');
    await page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(3).waitFor();
    assert.equal(await page.getByRole('button', { name: /Retry now|Delete|Kill/ }).count(), 0);
    assert.equal(await page.getByRole('checkbox').count(), 0);
    await go(page, 'Processes');
    await page.getByRole('table', { name: 'Worker processes' }).getByRole('row').nth(1).waitFor();
    assert.equal(await page.getByRole('button', { name: /^(Quiet|Stop)/ }).count(), 0);
    for (const [path, there] of watched) {
      await page.goto(world.base + path);
      await there(page.getByRole('main')).waitFor();
      assert.deepEqual(await page.getByRole('main').getByRole('button', { name: acts, disabled: false }).allInnerTexts(), [], path);
    }
    assert.deepEqual(faults.filter((f) => !f.includes('401')), []);
    await context.close();
  });

  test('who may act but not administer acts; a stranger does not come in', async () => {
    await http(`${world.management}/api/users/manager`, 'PUT', { password: 'manages', tags: 'management' });
    await http(`${world.management}/api/permissions/%2F/manager`, 'PUT', { configure: '.*', write: '.*', read: '.*' });
    await http(`${world.management}/api/users/stranger`, 'PUT', { password: 'strange', tags: '' });
    const { page, context } = await open(world.browser);
    await page.goto(world.base + '/');
    await page.getByLabel('Name').fill('stranger');
    await page.getByLabel('Password').fill('strange');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0);
    await signIn(page, world.base, 'manager', 'manages');
    await go(page, 'Dead');
    await page.getByRole('table', { name: 'dead jobs' }).getByRole('button', { name: /^Delete/ }).first().waitFor();
    await page.routeWebSocket(/\/api\/events/, () => {}); // it would report the state
    await page.route('**/api/overview', async (route) => {
      const answer = await route.fetch();
      const o = await answer.json();
      await route.fulfill({ response: answer, json: { ...o, journal: { ...o.journal, held: { scheduled_jobs: 3 } } } });
    });
    await go(page, 'Health');
    await page.reload();
    await page.getByText('You need the tag administrator').waitFor();
    await context.close();
  });

  test('the page comes back when the sidecar does', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await go(page, 'Scheduled');
    const rows = page.getByRole('table', { name: 'scheduled jobs' }).getByRole('row');
    await rows.nth(3).waitFor();
    await context.setOffline(true);
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByText("Can't reach Millrace").first().waitFor();
    assert.ok(await rows.count() > 3, 'what was there stays');
    await context.setOffline(false);
    // It may have been tried by itself.
    await page.getByRole('button', { name: 'Try now' }).click({ timeout: 2000 }).catch(() => {});
    await page.getByText("Can't reach Millrace").first().waitFor({ state: 'detached' });
    await context.close();
  });

  test('a proxy that answers for a sidecar that is away is no answer: it is tried again until there is one', async () => {
    const front = await proxy(Number(new URL(world.base).port));
    try {
      const { page, context } = await open(world.browser);
      await signIn(page, `http://127.0.0.1:${front.port}`);
      let asked = 0;
      page.on('request', (r) => { if (r.url().endsWith('/api/whoami')) asked++; });
      const away = page.getByRole('alert').filter({ hasText: 'Data may be stale' });
      const table = (name) => page.getByRole('table', { name }).getByRole('row').nth(1).waitFor();
      const pages = [[502, 'Retries', 'retries'], [503, 'Dead', 'dead jobs'], [504, 'Scheduled', 'scheduled jobs']];
      for (const [, link, name] of pages) {
        await go(page, link);
        await table(name); // the modules of the page are loaded
      }
      for (const [status, link, name] of pages) {
        front.says = status;
        await go(page, link);
        await away.waitFor();
        asked = 0;
        await until('it is asked more than once', () => asked > 1);
        front.says = 0;
        await away.waitFor({ state: 'detached' });
        await table(name);
      }
      await context.close();
    } finally {
      front.stop();
    }
  });

  test('what a user did and was asked is gone when the next one signs in', async () => {
    await plant(world, 'LeftBehind');
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await go(page, 'Retries');
    await page.getByRole('combobox', { name: /^Filter/ }).fill('class:LeftBehind');
    await page.keyboard.press('Enter');
    const notes = page.getByRole('region', { name: 'Notifications' });
    const listed = page.getByRole('navigation', { name: 'Pages of the list' });
    await listed.getByText(/^1 matching/).waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Reschedule' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reschedule 1 retry' }).click();
    await notes.getByRole('button', { name: 'Undo' }).waitFor();
    await page.getByRole('row', { name: /LeftBehind/ }).getByRole('button', { name: /^Delete/ }).click();
    await page.getByRole('dialog').waitFor();
    await context.clearCookies(); // the session ends during a request
    await page.getByLabel('Password').waitFor();
    await page.getByLabel('Name').fill('watcher');
    await page.getByLabel('Password').fill('watches');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await listed.getByText(/^1 matching/).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.equal(await notes.getByRole('button').count(), 0);
    await context.close();
  });
}
