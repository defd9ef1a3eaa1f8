// Limits: the list, the page of one, its actions, the dialogs that define and change one, and why a
// job waits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';
import { problem } from './tasks.js';

/** Shows the list of limits, without those of other tests. @param {any} me @param {string} text */
async function list(me, text) {
  await me.go('Limits');
  await me.find('searchbox', 'Filter limits').fill(text);
  return me.find('table', 'Limits').find('row').nth(1);
}

/** @param {any} world @param {string} source @param {any[]} limits */
const define = (world, source, limits) => http(`${world.base}/api/definitions`, 'POST', { source, limits });
/** @param {any} world @param {string} name */
const shown = (world, name) => http(`${world.base}/api/limits/${name}`);

/**
 * Enqueues limited jobs, one after the other, in a queue without workers. Waits until so many hold
 * slots.
 * @param {any} world
 * @param {string} limit
 * @param {string[]} keys
 * @param {number} held
 */
async function enqueue(world, limit, keys, held) {
  for (const [i, key] of keys.entries()) await http(`${world.base}/api/jobs`, 'POST', { jid: `${limit}-${i}`, class: 'Import', queue: limit, gate: { key } });
  await until(`${held} hold slots`, async () => (await shown(world, limit)).used === held);
}

export function limits(world) {
  story(world, 'a limit is defined in a form that says what it holds back, changed, and deleted, with undo', async (me) => {
    await me.go('Limits');
    await me.find('button', 'Define').click();
    await me.dialog.find('textbox', 'Name').fill('of.story');
    await me.dialog.find('textbox', /^Queues/).fill('orders, refunds');
    await me.dialog.find('checkbox', 'key').check();
    await me.dialog.reads(/Enter what the limit allows to see what it holds back/);
    await me.dialog.find('textbox', 'Jobs at once').fill('none');
    await me.dialog.find('alert').reads(/whole number above 0/);
    await me.dialog.find('textbox', 'Jobs at once').fill('3');
    await me.dialog.reads(/No job held back; 0 waiting/);
    await me.dialog.find('textbox', 'Jobs that may begin').fill('100');
    assert.ok(await me.dialog.find('button', 'Define').disabled());
    await me.dialog.find('textbox', 'in seconds').fill('60');
    await me.dialog.find('button', 'Define').click();
    await me.find('heading', /of\.story/, { level: 1 }).seen();
    await me.find('region', 'Now').reads(/3 at once, 100 in 1 min per key Queues orders refunds Slots in use 0/);
    await me.find('region', 'By key').reads(/No limited jobs/);

    const concurrency = me.find('table', 'Definition').find('row', /^concurrency/);
    await me.find('button', 'Change').click();
    await me.dialog.reads(/Now 3 at once/);
    await me.dialog.find('textbox', 'Jobs at once').fill('5');
    await me.dialog.find('button', 'Change').click();
    await concurrency.reads(/5$/);
    assert.deepEqual((await shown(world, 'of.story')).definition.queues, ['orders', 'refunds'], 'the rest of the layer stays');
    await me.notes.find('button', 'Undo').click();
    await concurrency.reads(/3$/);

    await me.find('button', 'Delete').click();
    await me.dialog.find('button', 'Cancel').focused();
    await me.dialog.reads(/You can undo this\./);
    await me.dialog.find('button', 'Delete limit').click();
    await me.find('main').reads(/Limit not found/);
    await me.notes.find('button', 'Undo').click();
    await concurrency.reads(/3$/);
  }, { expected: /404/ });

  story(world, 'which jobs hold the slots that a job waits for, and a slot that is freed by hand', async (me) => {
    await define(world, 'slots', [{ name: 'slots', queues: ['slots'], per: ['key'], concurrency: 2 }]);
    await enqueue(world, 'slots', ['a', 'a', 'a', 'a', 'b'], 3);
    const row = await list(me, 'slots');
    await row.reads(/^slots active 2 at once per key 3 of 4 2 .*2 jobs: 1 key full/);
    await row.find('link', 'slots', { exact: true }).click();
    const keys = me.find('table', 'By key');
    await keys.find('row', /^a/).reads(/^a 2 of 2 2/);
    await keys.find('row', /^b/).reads(/^b 1 of 2 0/);
    await me.go('Blocked');
    await me.filter('jid:slots-3');
    await me.find('table', 'blocked jobs').find('link', 'Import', { exact: true }).click();
    const why = me.find('region', 'Why it waits');
    await why.reads(/due before it: 1\. .*slots holds it back 2 of 2 slots of a in use .*slots-0 since .*slots-1 since/);
    await why.find('link', 'slots-0').click();
    await me.find('heading', /slots-0/, { level: 1 }).seen();
    await me.back();
    await why.find('link', 'slots', { exact: true }).click();

    await me.find('button', 'Free slot: slots-0').click();
    await me.dialog.reads(/one job more than the limit allows runs meanwhile.*slots-0.*Import/);
    await me.dialog.find('button', 'Cancel').focused();
    await me.dialog.find('textbox', /^Reason/).fill('it was purged');
    await me.dialog.find('button', 'Free slot').click();
    await me.notes.reads(/slots-0: slot freed/);
    const held = me.find('table', 'Held slots');
    await held.find('row', /slots-0/).gone();
    await held.find('row', /slots-2/).seen();
    await keys.find('row', /^a/).reads(/^a 2 of 2 1/);
    await me.go('Operations');
    await me.find('tab', 'Audit log').click();
    await me.filter('op:freed');
    await me.find('table', 'Audit log').find('row', /slots-0/).reads(/it was purged/);
  });

  story(world, 'a limit is paused and resumed from the list', async (me) => {
    await define(world, 'turns', [{ name: 'turns', queues: ['turns'], concurrency: 2 }]);
    const row = await list(me, 'turns');
    await row.reads(/^turns active 2 at once 0 of 2 0/);
    await row.find('button', 'Pause: turns').click();
    await me.dialog.reads(/No job that the limit counts begins/);
    await me.dialog.find('textbox', /^Reason/).fill('a freeze');
    await me.dialog.find('button', 'Pause').click();
    await row.reads(/^turns paused/);
    await enqueue(world, 'turns', ['a'], 0);
    await row.reads(/^turns paused .* 1 job: paused/);
    await row.find('button', 'Resume: turns').click();
    await me.notes.reads(/turns: resumed/);
    await row.reads(/^turns active 2 at once 1 of 2/);
    await me.notes.find('button', 'Undo').click();
    await row.reads(/^turns paused/);
  });

  story(world, 'what an operator sets for one key says what it holds back, wins over code, and can be taken back', async (me) => {
    await define(world, 'keys', [{ name: 'each-key', queues: ['each-key'], per: ['key'], concurrency: 2 }]);
    await enqueue(world, 'each-key', ['a', 'a', 'a', 'b'], 3);
    await (await list(me, 'each-key')).find('link', 'each-key', { exact: true }).click();
    const keys = me.find('table', 'By key');
    await keys.find('button', 'Change: b').click();
    await me.dialog.reads(/for this key alone/);
    await me.dialog.find('textbox', 'Jobs at once').fill('1');
    await me.dialog.reads(/1 of 1 waiting job held back.*2 keys full/);
    await me.dialog.find('textbox', 'Jobs at once').fill('7');
    await me.dialog.reads(/3 of 9 slots in use · 1 key full/);
    await me.dialog.find('button', 'Change').click();
    await keys.find('row', /^b/).reads(/^b 1 of 7/);
    await me.find('table', 'Definition').find('row', /^overrides/).reads(/"b":\{"concurrency":7\}/);
    await me.tidy();
    await me.find('button', 'Change', { exact: true }).click();
    await me.dialog.reads(/A deploy does not change it/);
    await me.dialog.find('textbox', 'Jobs at once').fill('1');
    await me.dialog.reads(/1 of 1 waiting job held back/);
    await me.dialog.find('button', 'Change').click();
    await keys.find('row', /^a/).reads(/^a 2 of 1/);
    await me.tidy();
    await me.find('button', 'Remove operator’s layer').click();
    await me.dialog.reads(/allows again what code and files define/);
    await me.dialog.find('button', 'Remove operator’s layer').click();
    await keys.find('row', /^b/).reads(/^b 1 of 2/);
    await me.notes.find('button', 'Undo').click();
    await keys.find('row', /^b/).reads(/^b 1 of 7/);
    assert.deepEqual((await shown(world, 'each-key')).layers.operator.value, { concurrency: 1, overrides: { b: { concurrency: 7 } } });
  });

  story(world, 'an incomplete limit says what is missing, from the dashboard on', async (me) => {
    await define(world, 'rest', [{ name: 'rest', queues: ['rest'], concurrency: 2 }]);
    await http(`${world.base}/api/limits/rest`, 'PUT', { queues: ['rest'] });
    await define(world, 'rest', []);
    await (await problem(me, /Limit rest: the limit holds nothing back: it limits nothing/i)).click();
    await me.find('heading', /rest/, { level: 1 }).seen();
    await me.find('alert').reads(/The limit holds nothing back: it limits nothing: give concurrency or rate/);
    assert.ok(await me.find('button', 'Pause').disabled());
    await me.find('button', 'Change').click();
    await me.dialog.reads(/it limits nothing/);
    await me.dialog.find('textbox', 'Jobs at once').fill('1');
    await me.dialog.find('button', 'Change').click();
    await me.find('main').find('alert').gone();
    await me.find('button', 'Delete').click();
    await me.dialog.find('button', 'Delete limit').click();
    await me.find('main').reads(/Limit not found/);
  }, { expected: /404/ });

  story(world, 'with the keyboard to a limit, and its palette', async (me) => {
    await define(world, 'palette', [{ name: 'palette.limit', concurrency: 1000 }]);
    await me.press('g');
    await me.press('i');
    await me.find('heading', /^Limits/, { level: 1 }).seen();
    await me.find('table', 'Limits').find('row').nth(1).seen();
    await me.press('/');
    await me.find('searchbox', 'Filter limits').focused();
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('palette.limit');
    await me.find('option', /palette\.limit limit/).click();
    await me.find('heading', /palette\.limit/, { level: 1 }).seen();
    await define(world, 'palette', []);
  }, { expected: /404/ });

  test('an error of the API stays in the dialog of a limit, which keeps to its window at any width', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(world.base + '/limits');
    await page.getByRole('table', { name: 'Limits' }).getByRole('row').nth(1).waitFor();
    await page.getByRole('button', { name: 'Define', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const submit = dialog.getByRole('button', { name: 'Define', exact: true });
    assert.ok(await submit.isDisabled());
    await dialog.getByLabel('Name').fill('imports-each');
    await dialog.getByText('There is one with the name imports-each').waitFor();
    await dialog.getByLabel('Name').fill('too-many');
    await dialog.getByLabel('Jobs at once').fill('1000001');
    await dialog.getByText(/concurrency is a number from 1 to 1000000/).waitFor();
    assert.deepEqual(await resized(page, 'the dialog of a limit', [1400, 600, 390]), []);
    await submit.click();
    await until('the error is there', async () => await dialog.getByRole('alert').filter({ hasText: '1000000' }).count() > 0);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.ok((await http(`${world.base}/api/limits`)).every((/** @type {any} */ l) => l.name !== 'too-many'));
    await context.close();
  });
}
