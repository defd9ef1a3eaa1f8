// Governed queues: the list, the page of one, its actions, the dialogs, what its states mean, and
// what other pages say of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';
import { problem } from './tasks.js';

/** @param {any} world @param {string} name */
const shown = (world, name) => http(`${world.base}/api/governed-queues/${name}`);
/** @param {any} world @param {string} source @param {any[]} queues @param {any[]} [limits] */
const define = (world, source, queues, limits) => http(`${world.base}/api/definitions`, 'POST', { source, queues, limits });
/** Waits until a queue has a state. @param {any} world @param {string} name @param {string} state */
const is = (world, name, state) => until(`${name} is ${state}`, async () => (await shown(world, name)).state === state);

/** Enqueues plain jobs. @param {any} world @param {string} queue @param {string[]} keys */
async function enqueue(world, queue, keys) {
  for (const [i, key] of keys.entries()) await http(`${world.base}/api/jobs`, 'POST', { jid: `${queue}-${i}`, class: 'Import', queue, args: [{ customer: key }] });
}

/** Shows the list, without the queues of other tests. @param {any} me @param {string} text */
async function list(me, text) {
  await me.go('Governed');
  await me.find('searchbox', 'Filter governed queues').fill(text);
  return me.find('table', 'Governed queues').find('row').nth(1);
}

export function governed(world) {
  story(world, 'a queue is governed in a form, changed, and governed no longer, with undo', async (me) => {
    await me.go('Governed');
    await me.find('button', 'Govern').click();
    await me.dialog.reads(/Clients and workers change nothing/);
    await me.dialog.reads(/Enter a queue and valid values/);
    await me.dialog.find('combobox', 'Queue').fill('by.hand');
    await me.dialog.reads(/0 jobs waiting, and any number may.*Jobs in the queue are delivered first/);
    await me.dialog.find('textbox', /^Path to the key/).fill('args.0.customer');
    await me.dialog.find('textbox', 'Most that wait').fill('many');
    await me.dialog.find('alert').reads(/whole numbers above 0/);
    await me.dialog.find('textbox', 'Most that wait').fill('50');
    await me.dialog.find('textbox', /^Weights/).fill('customer 42 3');
    await me.dialog.find('button', 'Govern').click();
    await me.find('heading', /by\.hand/, { level: 1 }).seen();
    await is(world, 'by.hand', 'governed');
    await me.find('region', 'Now').reads(/Queue by\.hand State governed .* Waiting 0 of 50 .* Out 0 at most twice .* Key args\.0\.customer Weights customer 42: 3/);
    await me.find('region', 'Limits that count its jobs').seen();

    const most = me.find('table', 'Definition').find('row', /^max_waiting/);
    await me.find('button', 'Change').click();
    await me.dialog.find('textbox', 'Most that wait').fill('');
    await me.dialog.reads(/0 jobs waiting, and any number may/);
    await me.dialog.find('textbox', 'Most that wait').fill('60');
    await me.dialog.reads(/0 of 60 that may wait/);
    await me.dialog.find('button', 'Change').click();
    await most.reads(/60$/);
    assert.deepEqual((await shown(world, 'by.hand')).definition.weights, { 'customer 42': 3 }, 'the rest of the layer stays');
    await me.notes.find('button', 'Undo').click();
    await most.reads(/50$/);

    await me.find('button', 'Govern no longer').click();
    await me.dialog.find('button', 'Cancel').focused();
    await me.dialog.reads(/You can undo this\./);
    await me.dialog.find('button', 'Govern no longer').click();
    await me.find('main').reads(/Not a governed queue/);
    await me.notes.reads(/by\.hand: governed no longer/);
    await me.notes.find('button', 'Undo').click();
    await most.reads(/50$/);
  }, { expected: /404/ });

  story(world, 'what waits and what is out, why a job waits, and which limits count the jobs', async (me) => {
    await define(world, 'waits', [{ name: 'waits', key: 'args.0.customer' }], [{ name: 'waits-each', queues: ['waits'], per: ['key'], concurrency: 1 }]);
    await is(world, 'waits', 'governed');
    await enqueue(world, 'waits', ['a', 'a', 'a', 'b']);
    await until('two are out', async () => (await shown(world, 'waits')).out === 2);
    const row = await list(me, 'waits');
    await row.reads(/^waits governed 2 2 args\.0\.customer Code/);
    await row.find('link', 'waits', { exact: true }).click();
    await me.find('table', 'Limits that count its jobs').find('row', /^waits-each/).reads(/1 at once per key 2 of 2 2 jobs: /);
    const out = me.find('table', /^Out/);
    await out.find('row', /waits-0/).reads(/^waits-0 a /);
    await out.find('row', /waits-3/).reads(/^waits-3 b /);
    await me.find('link', 'Show them').click();
    await me.filter('jid:waits-2');
    await me.find('table', 'blocked jobs').find('link', 'Import', { exact: true }).click();
    await me.find('region', 'Why it waits').reads(/due before it: 1\. waits-each holds it back 1 of 1 slot of a in use .*waits-0 since/);
    await me.find('link', 'waits', { exact: true }).first().click();
    await me.find('main').reads(/Governed: 2 waiting at Millrace, 2 out\./);
    await me.find('link', 'Governed queue').click();
    await me.find('heading', /waits/, { level: 1 }).seen();
    await me.find('link', 'waits-each').click();
    await me.find('region', 'Now').find('link', 'governed').click();
    await me.find('heading', /^Governed queues.*waits/, { level: 1 }).seen();
  });

  story(world, 'a full queue says what that means from the dashboard on, and more may wait after a change', async (me) => {
    await define(world, 'full', [{ name: 'full', max_waiting: 2, paused: true }]);
    await is(world, 'full', 'governed');
    await enqueue(world, 'full', ['a', 'b', 'c']);
    await is(world, 'full', 'full');
    const row = await list(me, 'full');
    await row.reads(/^full full paused 3 of 2 0 /);
    await me.go('Dashboard');
    await (await problem(me, /Queue full: as many jobs wait as its max_waiting allows/)).click();
    await me.find('heading', /full/, { level: 1 }).seen();
    await me.find('main').reads(/As many jobs wait as may, so more are refused until a tenth of them is gone: .*No job of the governed queue is delivered until you resume it\./);
    await me.find('button', 'Change').click();
    await me.dialog.reads(/3 jobs waiting, and 2 may: new jobs are refused until fewer than/);
    await me.dialog.find('textbox', 'Most that wait').fill('10');
    await me.dialog.reads(/3 of 10 that may wait/);
    await me.dialog.find('button', 'Change').click();
    await is(world, 'full', 'governed');
    await me.find('region', 'Now').reads(/Waiting 3 of 10/);
    await me.tidy();
    await me.find('button', 'Remove operator’s layer').click();
    await me.dialog.reads(/governed again as code and files define it/);
    await me.dialog.find('button', 'Remove operator’s layer').click();
    await me.find('region', 'Now').reads(/State full paused/);
  });

  story(world, 'a governed queue is paused and resumed from the list', async (me) => {
    await define(world, 'turned', [{ name: 'turned' }]);
    await is(world, 'turned', 'governed');
    const row = await list(me, 'turned');
    await row.find('button', 'Pause: turned').click();
    await me.dialog.reads(/No job of the queue is delivered until you resume it/);
    await me.dialog.find('textbox', /^Reason/).fill('a freeze');
    await me.dialog.find('button', 'Pause').click();
    await row.reads(/^turned paused/);
    await row.find('button', 'Resume: turned').click();
    await me.notes.reads(/turned: resumed/);
    await row.reads(/^turned governed/);
    await me.notes.find('button', 'Undo').click();
    await row.reads(/^turned paused/);
  });

  story(world, 'who may only read sees governed queues and can change nothing', async (me) => {
    await define(world, 'read', [{ name: 'only.read' }]);
    await is(world, 'only.read', 'governed');
    const row = await list(me, 'only.read');
    await row.reads(/^only\.read governed/);
    assert.equal(await row.find('button').count(), 0);
    assert.equal(await me.find('button', 'Govern').count(), 0);
    await row.find('link', 'only.read').click();
    await me.find('region', 'Now').reads(/Queue only\.read/);
    for (const name of ['Pause', 'Change', /Govern/, /Remove/]) assert.equal(await me.find('button', name).count(), 0);
  }, { as: ['watcher', 'watches'] });

  story(world, 'with the keyboard to a governed queue, and its palette', async (me) => {
    await define(world, 'key', [{ name: 'palette.governed' }]);
    await me.press('g');
    await me.press('v');
    await me.find('heading', /^Governed queues/, { level: 1 }).seen();
    await me.find('table', 'Governed queues').find('row').nth(1).seen();
    await me.press('/');
    await me.find('searchbox', 'Filter governed queues').focused();
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('palette.governed');
    await me.find('option', /palette\.governed governed queue/).click();
    await me.find('heading', /palette\.governed/, { level: 1 }).seen();
  });

  test('each state of a governed queue says what it means; the error of the API stays in the dialog, at any width', async () => {
    const { page, context } = await open(world.browser);
    let state = 'bypassed';
    await page.route(/\/api\/governed-queues$/, (route) => route.fulfill({ json: [
      { name: 'mails', state, since: 1, paused: false, definition: {}, layers: {}, waiting: 1200, waiting_more: true, out: 3 }] }));
    await signIn(page, world.base);
    for (const [now, says] of [['bypassed', /jobs came without limits: take the binding out/], ['suspended', /the queue jobs\.full is away: start that node/],
      ['switching', /its log says why/], ['draining', /nothing is delivered until workers have taken them/], ['governed', /Governed: 1,200\+ waiting at Millrace, 3 out/]]) {
      state = now;
      await page.goto(world.base + '/job-queues/mails');
      await page.getByText(says).waitFor();
    }
    await page.unrouteAll();
    await page.goto(world.base + '/governed-queues');
    await page.getByRole('button', { name: 'Govern', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const submit = dialog.getByRole('button', { name: 'Govern', exact: true });
    assert.ok(await submit.isDisabled());
    await dialog.getByLabel('Queue').fill('archive');
    await dialog.getByText(/jobs are in the queue: nothing else is delivered until workers have taken them/).waitFor();
    await dialog.getByLabel('Queue').fill('too.far');
    await dialog.getByLabel('Most that are out').fill('9999999');
    assert.deepEqual(await resized(page, 'the dialog of a governed queue', [1400, 600, 390]), []);
    await submit.click();
    await dialog.getByRole('alert').filter({ hasText: 'ahead is a number' }).waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.ok((await http(`${world.base}/api/governed-queues`)).every((/** @type {any} */ q) => q.name !== 'too.far'));
    await context.close();
  });
}
