// Each action on an entry, and its undo.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { http, until } from './sidecar.js';

const now = () => Date.now() / 1000;

/** Makes an entry in each set, with a class of its own. @param {any} world @param {string} cls */
export async function plant(world, cls) {
  const job = (jid) => ({ jid, class: cls, queue: 'actions', args: [1], retry: 5 });
  await world.publish('scheduled_jobs', { type: 'scheduled_job', jid: cls + '-s', scheduled_at: now() + 90_000, job: job(cls + '-s') });
  await world.publish('retries', { type: 'retry', jid: cls + '-r', retry_at: now() + 90_000, retry_count: 1, error_class: 'E', error_message: 'm', job: job(cls + '-r') });
  await world.publish('dead_jobs', { type: 'dead_job', jid: cls + '-d', died_at: now(), retry_count: 5, error_class: 'E', error_message: 'm', job: job(cls + '-d') });
  await until('they are read', async () => (await Promise.all(['scheduled-jobs', 'retries', 'dead-jobs'].map((s) =>
    http(`${world.base}/api/${s}?page=1&class=${cls}`)))).every((l) => l.filtered_count === 1));
}

export function actions(world) {
  const sets = [['Scheduled', 'scheduled jobs', ['Kill', 'Delete', 'Change'], 'Run now'],
    ['Retries', 'retries', ['Kill', 'Delete', 'Change'], 'Retry now'], ['Dead', 'dead jobs', ['Delete', 'Change'], 'Retry now']];

  for (const [link, table, undoable, last] of sets) {
    test(`${table}: everything that can be done to one, and its undo`, async () => {
      const cls = 'Action' + link;
      await plant(world, cls);
      const { page, context, faults } = await open(world.browser);
      await signIn(page, world.base);
      faults.length = 0;
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: link }).click();
      await page.getByRole('combobox', { name: /^Filter/ }).fill('class:' + cls);
      await page.keyboard.press('Enter');
      const row = page.getByRole('table', { name: table }).getByRole('row', { name: cls });
      for (const action of undoable) {
        await row.getByRole('button', { name: new RegExp('^' + action) }).click();
        if (action === 'Change') {
          await page.getByRole('dialog').getByLabel('Queue').fill('elsewhere');
          await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
        } else if (action === 'Delete') await page.getByRole('dialog').getByRole('button', { name: 'Delete 1 job' }).click();
        const notes = page.getByRole('region', { name: 'Notifications' });
        await notes.hover(); // notifications stay while the pointer is over them, and rows do not
        if (action === 'Change') await row.getByRole('link', { name: 'elsewhere', exact: true }).waitFor();
        else await page.getByText(/No matches in [\d,]+ jobs/).waitFor();
        await notes.getByRole('button', { name: 'Undo' }).last().click();
        await page.mouse.move(5, 5);
        await row.getByRole('link', { name: 'actions', exact: true }).waitFor();
        const away = notes.getByRole('button', { name: 'Dismiss' });
        // It may have disappeared by itself.
        while (await away.count()) await away.first().click({ timeout: 2000 }).catch(() => {});
        await page.mouse.move(5, 5);
      }
      await row.getByRole('button', { name: new RegExp('^' + last) }).click();
      await page.mouse.move(5, 5);
      await page.getByText(/No matches in [\d,]+ jobs/).waitFor();
      assert.deepEqual(faults, []);
      await context.close();
    });
  }

  test('queues: moved, emptied and deleted, each after its name was typed', async () => {
    await http(`${world.base}/api/job-queues/hall`, 'PUT');
    await http(`${world.base}/api/job-queues/yard`, 'PUT');
    for (let i = 0; i < 5; i++) await http(`${world.base}/api/jobs`, 'POST', { class: 'Cart', queue: 'yard', args: [i] });
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'yard', exact: true }).click();
    await page.getByText('5 jobs wait').waitFor();
    await page.getByRole('button', { name: 'Move' }).click();
    assert.equal(await page.getByRole('dialog').getByRole('alert').count(), 0, 'nothing is wrong before a queue is named');
    const offered = await page.getByRole('dialog').locator('datalist option').evaluateAll((all) => all.map((o) => o.value));
    assert.ok(offered.includes('hall') && !offered.includes('yard'), offered.join());
    await page.getByRole('dialog').getByLabel('To queue').fill('hall');
    await page.getByRole('dialog').getByRole('button', { name: 'Move 5 jobs' }).click();
    await page.getByText('yard: jobs moved to hall').first().waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Queues', exact: true }).click();
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'hall', exact: true }).click();
    await page.getByText('5 jobs wait').waitFor();
    for (const name of ['Purge', 'Delete']) assert.match(await page.getByRole('button', { name }).getAttribute('class'), /\bplain\b/);
    await page.getByRole('button', { name: 'Purge' }).click();
    const drop = page.getByRole('dialog').getByRole('button', { name: /^Purge \d/ });
    assert.ok(await drop.isDisabled());
    await page.getByRole('dialog').getByLabel(/^Type/).fill('hall');
    await page.getByRole('dialog').getByLabel(/^Reason/).fill('spilled');
    await drop.click();
    await page.getByText('hall: 5 jobs purged').first().waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByText(/^Deletes the queue and its jobs\. This can't be undone\./).waitFor();
    await page.getByRole('dialog').getByLabel(/^Type/).fill('hall');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete queue' }).click();
    await page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor();
    await page.mouse.move(5, 5);
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'hall', exact: true }).waitFor({ state: 'detached' });
    await page.goto(world.base + '/operations?tab=audit');
    const done = page.getByRole('table', { name: 'Audit log' });
    for (const row of [/guest moved yard to hall \(5 jobs\)/, /guest purged hall \(5 jobs\).*spilled/, /guest queue deleted hall/]) await done.getByRole('row', { name: row }).waitFor();
    await context.close();
  });
}
