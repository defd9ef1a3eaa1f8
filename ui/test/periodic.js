// Periodic jobs: the list, the page of one, its actions, and the dialogs that define and change one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { story } from './person.js';
import { http, until } from './sidecar.js';
import { problem } from './tasks.js';

/** Shows the list of periodic jobs, without those of other tests. @param {any} me @param {string} text */
async function list(me, text) {
  await me.go('Periodic');
  await me.find('searchbox', 'Filter periodic jobs').fill(text);
  return me.find('table', 'Periodic jobs').find('row').nth(1);
}

/** @param {any} world @param {string} source @param {any[]} jobs */
const define = (world, source, jobs) => http(`${world.base}/api/definitions`, 'POST', { source, periodic_jobs: jobs });
/** @param {any} world @param {string} name */
const shown = (world, name) => http(`${world.base}/api/periodic-jobs/${name}`);

export function periodic(world) {
  story(world, 'a periodic job is defined in a form that shows its ticks, changed, and deleted, with undo', async (me) => {
    await me.go('Periodic');
    await me.find('button', 'Define').click();
    await me.dialog.find('textbox', 'Name').fill('night.story');
    const ticks = me.dialog.find('listitem');
    await me.dialog.find('textbox', /^Cron expression/).fill('0 3 * *');
    await me.dialog.reads(/4 fields, not 5/);
    await me.dialog.find('textbox', /^Cron expression/).fill('0 3 * * *');
    await me.dialog.find('combobox', 'Time zone').fill('Europe/Stockholm');
    await ticks.nth(4).reads(/20\d\d-\d\d-\d\d 03:00:00 in \d/);
    await me.dialog.find('textbox', 'Class').fill('NightStory');
    await me.dialog.find('textbox', 'Arguments').fill('[9007199254740993]');
    assert.ok(!await me.dialog.find('button', 'Define').disabled());
    await me.dialog.find('button', 'Define').click();
    await me.find('heading', /night\.story/, { level: 1 }).seen();
    await me.find('region', 'the arguments').reads(/9007199254740993/);
    await me.find('region', 'Schedule').reads(/every day at 03:00.*0 3 \* \* \* Europe\/Stockholm/);
    assert.equal(await me.find('region', 'Next ticks').find('listitem').count(), 10);

    const cron = me.find('table', 'Definition').find('row', /^cron/);
    await me.find('button', 'Change').click();
    await me.dialog.find('textbox', /^Cron expression/).fill('30 4 * * mon');
    await ticks.first().reads(/^Mon .* 04:30:00/);
    await me.dialog.find('button', 'Change').click();
    await cron.reads(/30 4 \* \* mon/);
    assert.equal((await http(`${world.base}/api/periodic-jobs/night.story`)).definition.job.class, 'NightStory', 'the rest of the layer stays');
    await me.notes.find('button', 'Undo').click();
    await cron.reads(/0 3 \* \* \*/);
    await me.find('region', 'the arguments').reads(/9007199254740993/);

    await me.find('button', 'Delete').click();
    await me.dialog.find('button', 'Cancel').focused();
    await me.dialog.reads(/You can undo this\./);
    await me.dialog.find('button', 'Delete periodic job').click();
    await me.find('main').reads(/Periodic job not found/);
    await me.notes.find('button', 'Undo').click();
    await cron.reads(/0 3 \* \* \*/);
    await me.find('region', 'the arguments').reads(/9007199254740993/);
  }, { expected: /404|next-ticks/ });

  story(world, 'a periodic job of code is paused and resumed, run, and its next tick is skipped', async (me) => {
    await define(world, 'acts', [{ name: 'acts', every: 86_400 * 300, tz: 'UTC', job: { class: 'Acts', queue: 'periodic-acts' } }]);
    const row = await list(me, 'acts');
    await row.reads(/^acts active every 300 d Acts periodic-acts/);
    await row.find('button', 'Pause: acts').click();
    await me.dialog.reads(/not made up for/);
    await me.dialog.find('textbox', /^Reason/).fill('a freeze');
    await me.dialog.find('button', 'Pause').click();
    await row.reads(/^acts paused/);
    await row.find('button', 'Resume: acts').click();
    await me.notes.reads(/acts: resumed/);
    await row.reads(/^acts active/);
    await me.tidy();
    await row.find('link', 'acts', { exact: true }).click();

    await me.find('button', 'Skip next').click();
    await me.dialog.reads(/can't be undone/);
    await me.dialog.find('button', 'Skip tick').click();
    await me.find('table', 'Newest ticks').find('row', /skipped manually/).reads(/guest/);
    await me.tidy();
    await me.find('button', 'Run now').click();
    await me.dialog.reads(/coming ticks stay as they are.*Acts.*periodic-acts/);
    await me.dialog.find('button', 'Run now').click();
    const ran = me.find('table', 'Newest ticks').find('row', /run manually/);
    await ran.reads(/guest/);
    await me.notes.find('link', 'Show').click();
    await me.find('heading', /Acts/, { level: 1 }).seen();
    await me.find('main').find('link', 'acts', { exact: true }).click();
    assert.match(me.address(), /\/periodic-jobs\/acts\?tick=\d+$/);
    await me.find('heading', /acts/, { level: 1 }).seen();
    await me.find('region', 'Definition').reads(/Code: acts, set by guest/);
    await me.go('Operations');
    await me.find('tab', 'Audit log').click();
    await me.filter('op:skipped');
    await me.find('table', 'Audit log').find('link', 'acts').first().seen();
  });

  story(world, 'what an operator sets wins over code, is marked, and can be taken back', async (me) => {
    await define(world, 'layers', [{ name: 'layers', cron: '0 1 * * *', job: { class: 'Layers', args: [1], queue: 'periodic-acts' } }]);
    await (await list(me, 'layers')).find('link', 'layers', { exact: true }).click();
    await me.find('button', 'Change').click();
    await me.dialog.reads(/A deploy does not change it/);
    await me.dialog.find('listitem').first().reads(/01:00:00/);
    await me.dialog.find('button', 'At an interval').click();
    await me.dialog.find('textbox', 'Seconds from tick to tick').fill('31536000');
    await me.dialog.find('group', 'State').find('button', 'Paused').click();
    await me.dialog.find('button', 'Change').click();
    const table = me.find('table', 'Definition');
    await table.find('row', /^every/).reads(/31536000/);
    await table.find('row', /^paused/).reads(/true/);
    await me.find('region', 'Next ticks').reads(/skipped while the job is paused/);
    await me.tidy();
    await me.find('button', 'Remove operator’s layer').click();
    await me.dialog.reads(/as code and files define it/);
    await me.dialog.find('button', 'Remove operator’s layer').click();
    await table.find('row', /^every/).gone();
    await me.find('region', 'Schedule').reads(/every day at 01:00/);
    await me.notes.find('button', 'Undo').click();
    await table.find('row', /^every/).reads(/31536000/);
    assert.deepEqual((await shown(world, 'layers')).layers.operator.value, { every: 31_536_000, paused: true });
  });

  story(world, 'an incomplete job says what is missing, from the dashboard on', async (me) => {
    await define(world, 'parts', [{ name: 'part', cron: '0 1 * * *', job: { class: 'Part' } }]);
    await http(`${world.base}/api/periodic-jobs/part`, 'PUT', { tz: 'Europe/Paris' });
    await define(world, 'parts', []);
    await (await list(me, 'part')).reads(/^part incomplete/);
    await me.find('table', 'Periodic jobs').find('link', 'part').click();
    await me.find('alert').reads(/The periodic job has no ticks: it does not say when it is due/);
    assert.ok(await me.find('button', 'Run now').disabled());
    await me.go('Dashboard');
    await (await problem(me, /Periodic job part: the periodic job has no ticks/i)).click();
    await me.find('heading', /part/, { level: 1 }).seen();
    await me.find('button', 'Delete').click();
    await me.dialog.find('button', 'Delete periodic job').click();
    await me.find('main').reads(/Periodic job not found/);
  }, { expected: /404/ });

  story(world, 'with the keyboard to a periodic job, and its palette', async (me) => {
    await define(world, 'keys', [{ name: 'palette.one', every: 86_400 * 300, job: { class: 'Keys' } }]);
    await me.press('g');
    await me.press('p');
    await me.find('heading', /^Periodic jobs/, { level: 1 }).seen();
    await me.find('table', 'Periodic jobs').find('row').nth(1).seen();
    await me.press('/');
    await me.find('searchbox', 'Filter periodic jobs').focused();
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('palette.one');
    await me.find('option', /palette\.one periodic job/).click();
    await me.find('heading', /palette\.one/, { level: 1 }).seen();
  });

  test('an error of the API stays in the dialog, which keeps to its window at any width', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.goto(world.base + '/periodic-jobs');
    await page.getByRole('table', { name: 'Periodic jobs' }).getByRole('row').nth(1).waitFor();
    await page.getByRole('button', { name: 'Define', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const submit = dialog.getByRole('button', { name: 'Define', exact: true });
    assert.ok(await submit.isDisabled());
    await dialog.getByLabel('Name').fill('daily-report');
    await dialog.getByText('There is one with the name daily-report').waitFor();
    await dialog.getByLabel('Name').fill('no-zone');
    await dialog.getByLabel(/^Cron expression/).fill('0 3 * * *');
    await dialog.getByLabel('Time zone').fill('No/Where');
    await dialog.getByText(/tz "No\/Where" is not known/).waitFor();
    await dialog.getByLabel('Class').fill('NoZone');
    await dialog.getByText('More', { exact: true }).click();
    assert.deepEqual(await resized(page, 'the dialog of a periodic job', [1400, 600, 390]), []);
    await submit.click();
    await until('the error is there', async () => await dialog.getByRole('alert').filter({ hasText: 'No/Where' }).count() > 0);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.ok((await http(`${world.base}/api/periodic-jobs`)).every((/** @type {any} */ j) => j.name !== 'no-zone'));
    await context.close();
  });
}
