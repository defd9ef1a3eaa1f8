// The dialog that enqueues a job.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { schedule } from './pages.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';

/**
 * The pages with the button, and what shows that each is ready.
 * @type {[string, (main: any) => any][]}
 */
const places = [['/jobs', (m) => m.getByRole('link', { name: 'DailyReport' }).first()], ['/job-queues', (m) => m.getByRole('link', { name: 'archive' })],
  ['/job-queues/archive', (m) => m.getByText('no workers consume this queue')]];

/**
 * Opens a page, and the dialog on it.
 * @param {any} world
 * @param {string} path
 */
async function begin(world, path) {
  const { page, context } = await open(world.browser);
  /** @type {{key: string, body: string}[]} */
  const sent = [];
  page.on('request', (r) => { if (r.method() === 'POST' && r.url().endsWith('/api/jobs')) sent.push({ key: r.headers()['idempotency-key'], body: r.postData() }); });
  await signIn(page, world.base);
  await page.goto(world.base + path);
  const dialog = page.getByRole('dialog', { name: 'Enqueue a job' });
  const button = page.getByRole('main').getByRole('button', { name: 'Enqueue', exact: true });
  await button.click();
  await dialog.waitFor();
  const field = (/** @type {string} */ name) => dialog.getByLabel(name);
  const fill = async (/** @type {Record<string, string>} */ all) => { for (const [name, value] of Object.entries(all)) await field(name).fill(value); };
  const values = () => Promise.all(['Class', 'Queue', 'Arguments'].map((name) => field(name).inputValue()));
  const says = (/** @type {string|RegExp} */ text) => dialog.getByRole('alert').filter({ hasText: text }).waitFor();
  const notes = page.getByRole('region', { name: 'Notifications' });
  return { page, context, sent, dialog, button, field, fill, values, says, notes, submit: dialog.getByRole('button', { name: 'Enqueue' }) };
}

/**
 * Waits until a queue has so many jobs, and returns them as they are written there.
 * @param {any} world
 * @param {string} queue
 * @param {number} n
 */
const waiting = (world, queue, n) => until(`${n} jobs are in ${queue}`, async () => {
  const all = await http(`${world.base}/api/job-queues/${queue}/jobs?count=10`);
  return all.length === n && all.map((/** @type {any} */ j) => j.body);
});

/**
 * Makes the sidecar carry out the next job that is sent, and loses its answer.
 * @param {any} page
 */
const loseAnswer = (page) => page.route('**/api/jobs', async (/** @type {any} */ route) => {
  await route.fetch();
  await route.abort();
}, { times: 1 });

export function enqueuing(world) {
  test('a job is enqueued from the page of its queue, and arrives there as it was written', async () => {
    await http(`${world.base}/api/job-queues/parcels`, 'PUT');
    const { page, context, sent, dialog, field, fill, notes, submit } = await begin(world, '/job-queues/parcels');
    assert.ok(await field('Class').evaluate((el) => el === document.activeElement));
    assert.equal(await field('Queue').inputValue(), 'parcels');
    assert.ok(await submit.isDisabled());
    assert.equal(await dialog.getByRole('alert').count(), 0, 'nothing is wrong before the first letter');
    const offered = (/** @type {string} */ id) => dialog.locator(`#${id} option`).evaluateAll((all) => all.map((o) => o.value));
    await until('classes and queues are suggested', async () => (await offered('known-classes')).includes('SendInvoice') && (await offered('known-queues')).includes('archive'));
    const args = '[9007199254740993, {"to": "ann@example.com", "weight": 1.10}]';
    await fill({ Class: 'SendParcel', Arguments: args });
    await submit.click();
    await notes.getByText(/^SendParcel \w{8}: enqueued$/).waitFor();
    await notes.getByRole('button', { name: 'Dismiss' }).click(); // the next one is alone
    await dialog.waitFor({ state: 'detached' });
    assert.deepEqual(sent.map((s) => s.body), [`{"class":"SendParcel","args":${args},"queue":"parcels"}`]);
    assert.match(sent[0].key, /^[0-9a-f]{32}$/);
    const [body] = await waiting(world, 'parcels', 1);
    assert.ok(body.includes('"args":[9007199254740993,{"to":"ann@example.com","weight":1.10}]'), body);
    await page.getByText('1 ready').first().waitFor();
    await page.getByRole('button', { name: 'Enqueue', exact: true }).click();
    await fill({ Class: 'SendParcel' });
    await submit.click();
    await dialog.waitFor({ state: 'detached' });
    await notes.hover(); // it stays
    await notes.getByRole('link', { name: 'Show' }).click();
    await page.getByRole('heading', { name: /SendParcel/, level: 1 }).waitFor();
    const [first, second] = sent.map((s) => s.key);
    assert.notEqual(first, second, 'each dialog has a key of its own');
    await context.close();
  });

  test('a job with a time is scheduled, with its priority, retries and tags', async () => {
    const { page, context, dialog, field, fill, notes } = await begin(world, '/jobs?state=scheduled-jobs&class=SendLater');
    assert.equal(await field('Queue').inputValue(), 'default');
    await dialog.getByText('More', { exact: true }).click();
    await dialog.getByRole('button', { name: 'At a time' }).click();
    await dialog.getByRole('button', { name: 'In 1 d' }).click();
    await fill({ Class: 'SendLater', Queue: 'parcels', Priority: '3', 'Maximum retries': '4', Tags: 'vip, nightly run,' });
    // Enter alone begins a line.
    await field('Arguments').press('Control+Enter');
    await notes.getByText(/^SendLater \w{8}: scheduled$/).waitFor();
    await page.getByRole('table', { name: 'scheduled jobs' }).getByRole('row', { name: /SendLater/ }).waitFor();
    const { items } = await http(`${world.base}/api/scheduled-jobs?class=SendLater&page=1`);
    assert.equal(items.length, 1);
    const { job, millrace } = items[0];
    assert.ok(Math.abs(millrace.at - Date.now() / 1000 - 86_400) < 120, String(millrace.at));
    assert.deepEqual([job.queue, job.args, job.priority, job.retry, job.tags], ['parcels', [], 3, 4, ['vip', 'nightly run']]);
    await context.close();
  });

  test('what is wrong is shown in the dialog, and the input stays', async () => {
    const { context, sent, dialog, fill, values, says, notes, submit } = await begin(world, '/job-queues');
    for (const [changes, fault] of /** @type {[Record<string, string>, string][]} */ ([
      [{ Queue: 'parcels' }, 'Enter a class'], [{ Class: 'SendWrong', Arguments: '{"to": 1}' }, 'Arguments must be a JSON array'],
      [{ Arguments: '[1,' }, 'Arguments must be a JSON array'], [{ Arguments: '[1]', Class: ' ' }, 'Enter a class'], [{ Class: 'SendWrong', Queue: '' }, 'Enter a queue'],
    ])) {
      await fill(changes);
      await says(fault);
      assert.ok(await submit.isDisabled(), fault);
    }
    await dialog.getByText('More', { exact: true }).click();
    for (const [name, value, fault] of [['Priority', '11', 'Priority must be'], ['Maximum retries', 'often', 'Maximum retries must be']]) {
      await fill({ Queue: 'parcels', [name]: value });
      await says(fault);
      await fill({ [name]: '' });
    }
    const long = 'q'.repeat(201); // only the API refuses it
    await fill({ Queue: long });
    await submit.click();
    await says('201 bytes');
    assert.deepEqual(await values(), ['SendWrong', long, '[1]']);
    assert.equal(await notes.getByRole('alert').count(), 0);
    await fill({ Queue: 'wrongs' });
    assert.equal(await dialog.getByRole('alert').count(), 0);
    await submit.click();
    await notes.getByText(/^SendWrong \w{8}: enqueued$/).waitFor();
    assert.equal(sent.length, 2);
    await context.close();
  });

  test('a double click, or another attempt after a lost answer, enqueues one job', async () => {
    await http(`${world.base}/api/job-queues/once`, 'PUT');
    const { page, context, sent, dialog, button, fill, values, says, notes, submit } = await begin(world, '/job-queues/once');
    await loseAnswer(page);
    await fill({ Class: 'SendOnce', Arguments: '[1]' });
    await submit.dblclick();
    await says('Millrace does not answer');
    assert.equal(sent.length, 1);
    assert.deepEqual(await values(), ['SendOnce', 'once', '[1]']);
    await page.keyboard.press('Enter'); // the button has kept the focus
    await notes.getByText(/^SendOnce \w{8}: enqueued$/).waitFor();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(sent.length, 2);
    assert.deepEqual(sent[0], sent[1]);
    assert.equal((await waiting(world, 'once', 1)).length, 1);

    // Another job under the same key is refused: the user decides whether there shall be two.
    await button.click();
    await loseAnswer(page);
    await fill({ Class: 'SendOnce', Arguments: '[2]' });
    await submit.click();
    await says('Millrace does not answer');
    await fill({ Arguments: '[3]' });
    await submit.click();
    await says('already enqueued before you changed it');
    await submit.click();
    await dialog.waitFor({ state: 'detached' });
    const all = await waiting(world, 'once', 3);
    assert.deepEqual(all.map((/** @type {string} */ body) => /"args":\[(\d)\]/.exec(body)[1]).sort(), ['1', '2', '3']);
    await context.close();
  });

  test('Escape closes the dialog, and nothing is sent', async () => {
    const { page, context, sent, dialog, button, fill } = await begin(world, '/jobs');
    await fill({ Class: 'SendNever' });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.ok(await button.evaluate((el) => el === document.activeElement));
    assert.deepEqual(sent, []);
    await context.close();
  });

  test('the dialog keeps to its window, at any width', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(world.base + '/jobs');
    await schedule(page);
    assert.deepEqual(await resized(page, '/jobs'), []);
    await context.close();
  });

  test('a read-only sidecar offers no job to enqueue', async () => {
    const { page, context } = await open(world.browser);
    let readOnly = false;
    await signIn(page, world.base);
    await page.route('**/api/whoami', async (/** @type {any} */ route) => {
      const who = await (await route.fetch()).json();
      await route.fulfill({ json: readOnly ? { ...who, may_act: false, read_only: true } : who });
    });
    const button = page.getByRole('button', { name: 'Enqueue', exact: true });
    for (readOnly of [false, true]) {
      for (const [path, there] of places) {
        await page.goto(world.base + path);
        await there(page.getByRole('main')).waitFor();
        assert.equal(await button.count(), readOnly ? 0 : 1, path);
      }
    }
    await context.close();
  });

  story(world, 'a job is enqueued from the palette', async (me) => {
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('enqueue');
    await me.find('option', 'Enqueue a job').click();
    const name = me.dialog.find('combobox', 'Class');
    await name.focused();
    assert.equal(await me.dialog.find('combobox', 'Queue').value(), 'default');
    await name.fill('SendSoon');
    await me.press('Enter');
    await me.notes.find('link', 'Show').click();
    await me.find('heading', /SendSoon/, { level: 1 }).seen();
  });

  story(world, 'who may only look does not find it in the palette', async (me) => {
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('enqueue');
    await me.find('option', /open the job/).seen();
    assert.equal(await me.find('option', 'Enqueue a job').count(), 0);
  }, { as: ['watcher', 'watches'] });
}
