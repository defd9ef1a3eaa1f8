// The frame and the layout: windows that change their width, compact rows, and the header.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overflow } from './boxes.js';
import { open, signIn } from './browser.js';
import { all } from './pages.js';
import { story } from './person.js';
import { until } from './sidecar.js';

/**
 * From a large screen through half of one and a tablet to a phone, and back. Nothing is loaded
 * again.
 */
export const widths = [1700, 1400, 1100, 900, 768, 600, 480, 390, 1400];
/** The theme and the height of rows: neither affects the other. */
const looks = [['light', 'comfortable'], ['dark', 'compact']];
let turn = 0;

/**
 * Returns the faults of a page at each width. The looks alternate from width to width, and from
 * page to page.
 * @param {any} page
 * @param {string} path
 * @param {number[]} [at]
 */
export async function resized(page, path, at = widths) {
  assert.ok(at.length % 2, 'an even number of widths would be seen in the same looks on each page');
  const wrong = [];
  for (const width of at) {
    const [theme, density] = looks[turn++ % looks.length];
    await page.evaluate((/** @type {any} */ look) => { Object.assign(document.documentElement.dataset, look); }, { theme, density });
    await page.setViewportSize({ width, height: 900 });
    // Charts take their new width after a frame.
    await page.evaluate(() => new Promise((done) => { setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 30); }));
    wrong.push(...(await page.evaluate(overflow)).map((/** @type {string} */ w) => `${path}, ${width} pixels wide, ${theme}, ${density}: ${w}`));
  }
  return [...new Set(wrong)];
}

/** Returns the heights of a table's rows. @param {any} page @param {string} name */
const heights = (page, name) => page.getByRole('table', { name, exact: true }).locator('tbody tr').evaluateAll((/** @type {any[]} */ rows) =>
  [...new Set(rows.map((r) => Math.round(r.getBoundingClientRect().height)))]);

export function layout(world) {
  test('every page and dialog keeps to its window while that changes its width, light and dark, comfortable and compact', async () => {
    const { page, context } = await open(world.browser, { viewport: { width: widths[0], height: 900 } });
    await signIn(page, world.base);
    const wrong = [];
    for (const [path, there, act] of all) {
      await page.setViewportSize({ width: widths[0], height: 900 });
      await page.goto(world.base + path);
      await act?.(page);
      await there(page).waitFor();
      wrong.push(...await resized(page, path, act && [1400, 600, 390]));
    }
    assert.deepEqual(wrong, []);
    await context.close();
  });

  test('compact rows are 32 pixels high, and so are those of long lists', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.getByRole('button', { name: 'Menu of guest' }).click();
    await page.getByRole('button', { name: 'Compact' }).click();
    const tables = [['/job-queues', 'Queues'], ['/scheduled-jobs', 'scheduled jobs'], ['/retries', 'retries'], ['/dead-jobs', 'dead jobs'],
      ['/worker-processes', 'Worker processes'], ['/job-metrics', 'Classes'], ['/rejected', 'Rejected records']];
    for (const [path, name] of tables) {
      await page.goto(world.base + path);
      await page.getByRole('table', { name, exact: true }).locator('tbody tr:not(.sk)').nth(1).waitFor();
      assert.deepEqual(await heights(page, name), [32], path);
    }
    await page.getByRole('button', { name: 'Menu of guest' }).click();
    await page.getByRole('button', { name: 'Comfortable' }).click();
    await page.goto(world.base + '/worker-processes');
    await page.getByRole('rowheader', { name: 'worker-2:822' }).waitFor();
    assert.deepEqual(await heights(page, 'Worker processes'), [48], 'no cell has two lines');
    await page.goto(world.base + '/retries');
    await page.getByText(/^1–50 of 1\d\d/).waitFor();
    await until('all rows are there', async () => await page.getByRole('table', { name: 'retries' }).locator('tbody tr').count() === 50);
    assert.deepEqual(await heights(page, 'retries'), [32], 'there are over a hundred on all pages');
    await context.close();
  });

  test('lists begin high, cards stand out, and rows have one icon', async () => {
    const { page, context } = await open(world.browser, { colorScheme: 'dark' });
    await signIn(page, world.base);
    const ground = (/** @type {string} */ at) => page.locator(at).first().evaluate((el) => getComputedStyle(el).backgroundColor);
    assert.deepEqual([await ground('body'), await ground('main .card')], ['rgb(22, 22, 22)', 'rgb(34, 34, 34)']);
    assert.equal(await page.getByRole('banner').getByText(/devel|\d+\.\d+\.\d+/).count(), 0, 'the version is in the menu');
    await page.goto(world.base + '/dead-jobs');
    const rows = page.getByRole('table', { name: 'dead jobs' }).locator('tbody tr');
    await rows.nth(20).waitFor();
    await page.mouse.move(5, 5);
    const chart = page.getByRole('figure', { name: /^Died per hour/ });
    assert.ok((await chart.boundingBox()).height < 110);
    assert.equal(await chart.getByText('died', { exact: true }).count(), 0, 'one kind of bar needs no legend');
    assert.ok(await rows.evaluateAll((all) => all.filter((r) => r.getBoundingClientRect().bottom <= innerHeight).length) >= 15);
    assert.equal(await rows.first().locator('.more').first().evaluate((el) => getComputedStyle(el).opacity), '0');
    await page.keyboard.press('Control+k');
    const list = page.getByRole('listbox', { name: 'Results' });
    const { height } = await list.boundingBox();
    await page.getByRole('combobox', { name: 'Search and commands' }).fill('zzz');
    assert.equal((await list.boundingBox()).height, height, 'the palette does not change its height');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(world.base + '/live');
    const run = page.getByRole('log').locator('.run').first();
    const shown = await run.evaluate((el) => [...el.children].map((one) => getComputedStyle(one).display !== 'none'));
    assert.deepEqual(shown.slice(1, 5), [true, true, true, true], 'status, class, queue and duration');
    await context.close();
  });

  test('in a window of 1440 pixels, queues have all columns, and processes their queues', async () => {
    const { page, context } = await open(world.browser);
    const name = 'mailers-transactional-eu-west-1-priority';
    const change = (/** @type {RegExp} */ path, /** @type {(all: any[]) => any[]} */ items) => page.route(path, async (/** @type {any} */ route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, items: items(answer.items) } });
    });
    await change(/\/api\/job-queues\?page=/, (all) => all.map((q, i) => ({ ...q, ...(i ? {} : { name }), publish_rate: 0.091, ack_rate: 0.091 })));
    await change(/\/api\/processes\?page=/, (all) => all.filter((p) => p.tag === 'shop'));
    await signIn(page, world.base);
    await page.goto(world.base + '/job-queues');
    const table = page.getByRole('table', { name: 'Queues' });
    const link = table.getByRole('link', { name });
    await link.waitFor();
    await table.getByRole('cell', { name: '5.5/min' }).first().waitFor();
    await page.evaluate(async () => { await document.fonts.ready; });
    assert.equal(await table.evaluate((el) => el.parentElement.scrollWidth - el.parentElement.clientWidth), 0, 'the table is wider than its card');
    assert.ok((await link.boundingBox()).width >= 100);
    await page.goto(world.base + '/worker-processes');
    const queues = page.getByRole('table', { name: 'Worker processes' }).getByText(/^demo\.critical×5, mails×2/);
    await until('all are there', async () => await queues.count() === 3);
    await page.evaluate(async () => { await document.fonts.ready; });
    assert.deepEqual(await queues.evaluateAll((all) => all.map((el) => el.scrollWidth - el.clientWidth)), [0, 0, 0], 'they are cut');
    await context.close();
  });

  test('problems fill their card on the dashboard, few and many', async () => {
    const { page, context } = await open(world.browser);
    let n = 0;
    await page.route('**/api/attention', (/** @type {any} */ route) => route.fulfill({ json: { now: Date.now() / 1000, items: Array.from({ length: n }, (_, i) => (
      { kind: 'queue_growing', severity: 'warning', subject: 'queue-' + i, text: 'it grows by 9.0 jobs/s, 300 jobs wait', value: 9 })) } }));
    await signIn(page, world.base);
    const card = page.getByRole('region', { name: 'Needs attention' });
    for (n of [1, 3, 8]) {
      await page.goto(world.base + '/dashboard');
      await until(`${n} are there`, async () => await card.getByRole('listitem').count() === n);
      const [all, list, first, last] = await Promise.all([card, card.getByRole('list'), card.getByRole('listitem').first(), card.getByRole('listitem').last()].map((at) => at.boundingBox()));
      assert.ok(all.y + all.height - list.y - list.height < 32, `below ${n} problems there is room`);
      if (n === 3) assert.equal(first.y, last.y, 'three are beside each other');
    }
    await context.close();
  });

  test('one operation beside many errors has no card that is mostly empty', async () => {
    const { page, context } = await open(world.browser);
    const errors = Array.from({ length: 8 }, (_, i) => ({ fingerprint: 'f' + i, error_class: 'E' + i, class: 'Mail', message: 'refused', count: 9, retries: 9, dead: 0 }));
    await page.route('**/api/errors*', (/** @type {any} */ route) => route.fulfill({ json: { items: errors } }));
    const operation = { id: 'o', action: 'delete', set: 'dead-jobs', total: 7, done: 7, failed: 0, state: 'done', started_at: Date.now() / 1000 };
    await page.route('**/api/operations*', (/** @type {any} */ route) => route.fulfill({ json: [operation] }));
    await signIn(page, world.base);
    const [tall, card] = ['Top errors', 'Operations'].map((name) => page.getByRole('region', { name }));
    await tall.getByText('E7').waitFor();
    const [left, right, list] = await Promise.all([tall, card, card.getByRole('list')].map((at) => at.boundingBox()));
    assert.equal(left.y, right.y, 'the two are beside each other');
    assert.ok(right.y + right.height - list.y - list.height < 32, 'below the operation there is room');
    await context.close();
  });

  test('a run on the live page says which worker it was on, and its error', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(world.base + '/live?text=liverun');
    const run = page.getByRole('log').locator('.run').first();
    await until('it is there', async () => {
      await world.publish('job_metrics', { type: 'job_metric', timestamp: Date.now() / 1000, jid: 'live-run-1', job_class: 'LiveRun', queue: 'inventory',
        duration_ms: 900, status: 'failed', worker_identity: 'worker-1:4711:shop', attempt: 1, error_class: 'CardDeclinedByTheBank' });
      return run.isVisible();
    });
    const cells = await run.evaluate((el) => [...el.children].map((one) => one.textContent + (one.scrollWidth > one.clientWidth + 1 ? ', cut' : '')));
    assert.deepEqual(cells.slice(1), ['failed', 'LiveRun', 'inventory', '900 ms', 'live-run', 'worker-1:4711:shop', 'CardDeclinedByTheBank']);
    await context.close();
  });

  test('a chart of ticked rows stays in sight, and p99 is a dash', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(world.base + '/job-metrics?range=24h&show=SyncInventory');
    const rows = page.getByRole('table', { name: 'Classes' }).locator('tbody tr');
    await rows.nth(4).waitFor();
    await page.locator('.legend span', { hasText: 'p99' }).first().locator('.sw.dash').waitFor();
    const ticked = page.getByRole('region', { name: 'Throughput by class' });
    const { y } = await ticked.boundingBox();
    await rows.last().evaluate((row) => row.scrollIntoView({ block: 'end' }));
    await until('the page is scrolled', async () => (await ticked.boundingBox()).y < y);
    assert.ok((await ticked.boundingBox()).y >= 0);
    await context.close();
  });

  test('notifications cover no button of the title and of the pager', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    const beside = (/** @type {any} */ a, /** @type {any} */ b) => a.x >= b.x + b.width || a.x + a.width <= b.x || a.y >= b.y + b.height || a.y + a.height <= b.y;
    for (const width of [1440, 1250, 1101, 1000, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(world.base + '/dead-jobs');
      await page.getByText(/^1–50 of/).waitFor();
      await page.getByRole('button', { name: 'Copy as curl' }).click();
      const toast = page.locator('.toasts .toast');
      await toast.hover(); // it stays
      for (const to of [0, 1e6]) {
        await page.evaluate((y) => scrollTo(0, y), to);
        const note = await toast.boundingBox();
        for (const button of await page.locator(':is(.title, .pager) :is(button, select)').all()) {
          const box = await button.boundingBox();
          assert.ok(!box || beside(box, note), `${width} pixels wide: ${await button.innerText()} is covered`);
        }
      }
    }
    await context.close();
  });

  test('the header says whether what is shown is live', async () => {
    const { page, context } = await open(world.browser);
    /** @type {any[]} */
    const sockets = [];
    page.on('websocket', (s) => sockets.push(s));
    await signIn(page, world.base);
    const says = (/** @type {string} */ word) => page.getByRole('banner').getByRole('button', { name: word + ' updates' }).waitFor();
    await says('Live');
    await page.getByRole('table', { name: 'Queues' }).getByRole('link').first().waitFor();
    assert.equal(sockets.length, 1, 'signing in opens one connection');
    await page.keyboard.press('p');
    await says('Paused');
    await page.keyboard.press('p');
    await says('Live');
    await context.setOffline(true);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Retries' }).click().catch(() => {});
    await says('Offline');
    await context.setOffline(false);
    await says('Live');
    await page.routeWebSocket(/\/api\/events/, (ws) => ws.close());
    await page.reload();
    await says('Polling');
    await context.close();
  });

  test('where no answer comes any more, the header says Offline, and Live when one does', async () => {
    const { page, context } = await open(world.browser);
    await page.clock.install();
    await signIn(page, world.base);
    const word = (/** @type {string} */ text) => page.getByRole('banner').getByRole('button', { name: text + ' updates' });
    await word('Live').waitFor();
    // The connection is lost without an error; events use a WebSocket, which stays open.
    await page.route('**/api/**', () => {});
    await until('it is said', async () => {
      await page.clock.fastForward(25_000);
      return word('Offline').isVisible();
    });
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    // The request that checks the connection may have no answer either.
    await page.clock.fastForward(25_000);
    await word('Live').waitFor();
    await context.close();
  });

  test('the environment has the colour of what it is, wherever its name says so', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    let environment = '';
    await page.route('**/api/whoami', async (/** @type {any} */ route) => route.fulfill({ json: { ...await (await route.fetch()).json(), environment } }));
    const looks = { production: 'bad', 'prod-eu': 'bad', 'eu-production': 'bad', 'Acme LIVE': 'bad', 'pre-prod': 'warn', preprod: 'warn',
      'eu-staging': 'warn', uat2: 'warn', olive: 'info', 'ann-laptop': 'info' };
    for (const [name, look] of Object.entries(looks)) {
      environment = name;
      await page.goto(world.base + '/rejected');
      await page.getByRole('banner').getByText(name, { exact: true }).waitFor();
      assert.equal(await page.locator('.pill.env').getAttribute('class'), 'pill env ' + look, name);
    }
    await context.close();
  });

  test('a chart whose page is left before the browser is idle is not drawn', async () => {
    const { page, context, faults } = await open(world.browser);
    // A busy browser that does not cancel idle callbacks. Tests with a clock of their own have such
    // a browser.
    await page.addInitScript(() => {
      window.requestIdleCallback = (fn) => window.setTimeout(fn, 700);
      window.cancelIdleCallback = () => {};
    });
    await signIn(page, world.base);
    faults.length = 0; // the errors from before the sign-in
    await page.getByRole('region', { name: 'Throughput' }).getByRole('figure').waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Processes' }).click();
    await page.getByRole('table', { name: 'Worker processes' }).getByRole('row').nth(1).waitFor();
    await page.waitForTimeout(1000);
    assert.deepEqual(faults, []);
    await context.close();
  });

  story(world, 'a range that was chosen goes along to other pages with charts, and to no list', async (me) => {
    const at = (/** @type {string} */ address) => until('the address is ' + address, () => me.address() === address);
    await me.find('group', 'Range').first().find('button', '24h', { exact: true }).click();
    await at('/dashboard?range=24h');
    await me.find('table', 'Queues').find('link', 'archive').click();
    await at('/job-queues/archive?range=24h');
    await me.go('Metrics');
    await at('/job-metrics?range=24h');
    await me.find('table', 'Classes').find('link', 'SendInvoice').click();
    await at('/job-metrics/SendInvoice?range=24h');
    await me.find('link', 'Retries', { exact: true }).last().click();
    await at('/retries?class=SendInvoice');
    await me.go('Metrics');
    await at('/job-metrics');
  });
}
