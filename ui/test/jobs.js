// The page of all jobs, a job's timeline, and jobs that hang.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until, work } from './sidecar.js';

/** Opens a job by its id. @param {import('./person.js').Person} me @param {string} jid */
async function open(me, jid) {
  await me.press('Control+k');
  await me.find('combobox', 'Search and commands').fill(jid);
  await me.find('option', /open the job/).click();
  await me.find('heading', new RegExp(jid), { level: 1 }).seen();
}

/** Makes the journal have no record of the first days of a job. @param {any} page */
const forgetful = (page) => page.route('**/api/jobs/dead-invoice-1', async (/** @type {any} */ route) => route.fulfill({ json: { ...await (await route.fetch()).json(), older_than_kept: true } }));

export function jobs(world) {
  story(world, 'what runs now, what runs for too long, and whose it is', async (me) => {
    await me.go('Jobs');
    const table = me.find('table', 'Running jobs');
    await table.find('row').nth(1).reads(/^DailyReport 3 h .*Stuck · \d+× usual reports worker-2:822:shop/);
    await me.filter('worker:worker-2:822:shop');
    await until('seven of this worker', async () => await table.find('rowheader').count() === 7);
    await me.filter('class:NoSuchClass');
    await me.find('region', 'Running jobs').reads(/No matches in \d+ jobs/);
    await me.find('button', 'Clear filters').click();
    await table.find('row').nth(1).find('link', 'DailyReport').click();
    await me.find('heading', /report-that-hangs/, { level: 1 }).seen();
    await me.find('heading', /report-that-hangs/, { level: 1 }).find('link', 'Jobs').click();
    await me.find('heading', 'Jobs', { level: 1 }).seen();
  });

  story(world, 'the runs of one class that failed on one worker within a day, as a link', async (me) => {
    await me.go('Jobs');
    await me.find('tab', 'Recent runs').click();
    const table = me.find('table', 'Recent runs');
    await table.find('row').nth(50).seen();
    for (const term of ['status:failed', 'class:SyncInventory', 'error:Timeout', 'worker:web-1:4711:shop', 'queue:inventory']) await me.filter(term);
    await me.find('combobox', 'Ended within').choose('Last 24 h');
    await until('all rows are of it', async () => {
      const rows = (await table.find('row').texts()).slice(1);
      return rows.length > 5 && rows.every((r) => /SyncInventory failed Timeout .*inventory web-1:4711:shop/.test(r));
    });
    assert.match(me.address(), /^\/jobs\?state=finished&status=failed&class=SyncInventory&error=Timeout&worker=web-1%3A4711%3Ashop&queue=inventory&since=86400$/);
    await me.find('button', 'Remove filter status').click();
    await me.filter('status:expired');
    await me.find('region', 'Recent runs').reads(/No matching runs/);
  });

  story(world, 'scheduled, retrying and dead jobs under one filter', async (me) => {
    await me.go('Jobs');
    for (const [tab, table] of [['Dead', 'dead jobs'], ['Retrying', 'retries']]) {
      await me.find('tab', new RegExp('^' + tab)).click();
      if (tab === 'Dead') await me.filter('class:SyncInventory');
      await until('all rows are of the class', async () => {
        const rows = (await me.find('table', table).find('row').texts()).slice(1);
        return rows.length > 5 && rows.every((r) => r.includes('SyncInventory'));
      });
    }
    await me.find('tab', /^Scheduled/).click();
    await me.find('region', 'scheduled jobs').reads(/No matches in \d+ jobs/);
  });

  story(world, 'a job that was changed, deleted and restored has a timeline in this order, with users and reasons', async (me) => {
    const jid = 'in-order';
    await http(`${world.base}/api/jobs`, 'POST', { jid, class: 'InOrder', queue: 'archive', args: [1], at: Date.now() / 1000 + 7200 });
    await open(me, jid);
    await me.find('button', 'Change').click();
    await me.dialog.find('textbox', 'Arguments').fill('[2]');
    await me.dialog.find('textbox', /^Reason/).fill('one was wrong');
    await me.dialog.find('button', 'Change').click();
    await me.find('region', 'Timeline').reads(/Changed arguments/);
    await me.find('button', 'Delete').click();
    await me.dialog.find('button', 'Delete 1 job').click();
    const lines = me.find('region', 'Timeline').find('listitem');
    await lines.last().reads(/^Deleted .*by guest/);
    await lines.last().find('button', 'Undo').click();
    await lines.nth(2).reads(/^Restored/);
    await lines.last().reads(/^Waits until it is due in/);
    const said = await lines.texts();
    assert.equal(said.length, 4, said.join(' | '));
    for (const [i, want] of [/^Changed arguments .*scheduled jobs · by guest “one was wrong”/, /^Deleted .*by guest/,
      /^Restored to scheduled jobs .*by guest/, /^Waits until it is due/].entries()) assert.match(said[i], want);
    assert.ok(!said.join().includes('Earlier history'), 'all of it is known');
  });

  story(world, 'it is said where the history of a job is not known from its beginning', async (me) => {
    await open(me, 'dead-invoice-1');
    await me.find('region', 'Timeline').reads(/^Timeline Earlier history is not available /);
  }, { prepare: forgetful });

  story(world, 'a dead job that was deleted and restored is shown as restored', async (me) => {
    await me.go('Dead');
    await me.filter('class:ImportUsers');
    await me.find('table', 'dead jobs').find('row').nth(1).find('link', 'ImportUsers').click();
    await me.find('button', 'Delete').click();
    await me.dialog.find('button', 'Delete 1 job').click();
    const lines = me.find('region', 'Timeline').find('listitem');
    await lines.last().find('button', 'Undo').click();
    await lines.last().reads(/^Restored to dead jobs .*by guest/);
    const said = await lines.texts();
    assert.match(said[0], /^Created /);
    assert.ok(said.findIndex((l) => /^Dead /.test(l)) < said.findIndex((l) => /^Deleted/.test(l)), said.join(' | '));
  });

  story(world, 'a job that hangs is cancelled', async (me) => {
    const worker = await work(world, '', 'hanging', ['queues: [exports]', 'concurrency: 1', 'classes: {Hang: {command: [sleep, "600"]}}']);
    try {
      await http(`${world.base}/api/jobs`, 'POST', { jid: 'hangs', class: 'Hang', queue: 'exports', args: [] });
      await me.go('Jobs');
      await me.find('table', 'Running jobs').find('link', 'Hang', { exact: true }).click();
      await me.find('region', 'Running').find('button', 'Cancel job').click();
      await me.dialog.reads(/Cancel Hang\?.*the job is discarded/);
      await me.dialog.find('textbox', /^Reason/).fill('it hangs');
      await me.dialog.find('button', 'Cancel job').click();
      await me.notes.reads(/Cancel requested/);
      const lines = me.find('region', 'Timeline').find('listitem');
      await lines.last().reads(/^Attempt 1 was discarded/);
      await lines.nth(await lines.count() - 2).reads(/^Cancel requested .*by guest “it hangs”/);
      await me.find('region', 'Running').gone();
      await me.find('region', 'Location').reads(/Finished Attempt 1 was discarded/);
    } finally {
      await http(`${world.base}/api/jobs/hangs/cancel`, 'POST').catch(() => {});
      await worker.stop();
    }
  });

  story(world, 'the failed attempts of a job count the last one', async (me) => {
    const worker = await work(world, '', 'failing', ['queues: [failing]', 'classes: {Fails: {command: ["false"]}}']);
    try {
      const job = { class: 'Fails', queue: 'failing', args: [] };
      await http(`${world.base}/api/jobs`, 'POST', { ...job, jid: 'fails-once', retry: 0 });
      await world.publish('retries', { type: 'retry', jid: 'killed-by-a-user', retry_at: Date.now() / 1000 + 3600, retry_count: 2,
        error_class: 'Boom', job: { ...job, jid: 'killed-by-a-user', retry: 3, retry_count: 1 } });
      const dead = { type: 'dead_job', died_at: Date.now() / 1000 };
      await world.publish('dead_jobs', { ...dead, jid: 'without-reason', retry_count: 3, error_class: 'Boom', job: { ...job, jid: 'without-reason', retry: 3, retry_count: 3 } });
      await world.publish('dead_jobs', { ...dead, jid: 'expired-later', retry_count: 2, error_class: 'expired', reason: 'expired', job: { ...job, jid: 'expired-later', retry: 3, retry_count: 2 } });
      await until('the retry is killed', () => http(`${world.base}/api/retries/killed-by-a-user/kill`, 'POST').then(() => true));
      await until('all are dead', async () => (await http(`${world.base}/api/dead-jobs?class=Fails&page=1`)).filtered_count === 4);
      for (const [jid, said] of [['fails-once', '1 of 1'], ['killed-by-a-user', '2 of 4'], ['without-reason', '4 of 4'], ['expired-later', '2 of 4']]) {
        await open(me, jid);
        await me.find('region', 'Dead', { exact: true }).reads(new RegExp(`Failed attempts ${said}\\b`));
      }
      await me.go('Dead');
      await me.filter('class:Fails');
      await me.find('table', 'dead jobs').find('row', /fails-once/).reads(/ 1 exhausted /);
      await me.go('Jobs');
      await me.find('tab', /^Dead/).click();
      await me.filter('class:Fails');
      await me.find('table', 'dead jobs').find('row', /without-reason/).reads(/ 4 /);
    } finally {
      await worker.stop();
    }
  });

  story(world, 'who may only look cannot cancel', async (me) => {
    await open(me, 'report-that-hangs');
    await me.find('region', 'Running').reads(/× usual/);
    assert.equal(await me.find('button', 'Cancel job').count(), 0);
  }, { as: ['watcher', 'watches'] });
}
