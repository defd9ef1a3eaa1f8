// Bulk actions and their undo: on all matching entries, on one error, and from the list of
// operations.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until } from './sidecar.js';

const now = () => Date.now() / 1000;

/** Blocks events about operations, and makes time pass fast. @param {any} page */
async function unheard(page) {
  await page.clock.install();
  const fast = setInterval(() => page.clock.fastForward(1000).catch(() => clearInterval(fast)), 500);
  page.on('close', () => clearInterval(fast));
  await page.route('**/api/operations', (route) => (route.request().method() === 'GET' ? route.fulfill({ json: [] }) : route.continue()));
}

export function bulk(world) {
  const there = (set, query, n) => until(`${n} are in ${set}`, async () => (await http(`${world.base}/api/${set}?page=1&${query}`)).filtered_count === n);
  /** Waits until an operation has ended, and keeps it visible. */
  const done = async (me, name, n) => {
    await me.operation(name).pointAt();
    await me.operation(name).reads(new RegExp(`${n} of ${n} done`));
  };

  story(world, 'scheduled jobs by the hundred: killed, rescheduled and run, and taken back where that can be', async (me) => {
    await http(`${world.base}/api/jobs`, 'POST', Array.from({ length: 120 }, (_, i) => ({ class: 'BulkJob', queue: 'bulk', args: [i], at: now() + 90_000 + i })));
    await http(`${world.base}/api/jobs`, 'POST', Array.from({ length: 7 }, (_, i) => ({ class: 'BulkBystander', queue: 'bulk', args: [i], at: now() + 90_000 + i })));
    await there('scheduled-jobs', 'class=BulkJob', 120);
    await there('scheduled-jobs', 'class=BulkBystander', 7);
    const begin = async (action) => {
      await me.listed.reads(/^1–50 of 120 matching/);
      await me.find('checkbox', 'Select all on this page').check();
      await me.find('button', 'Select all 120 matching').click();
      const bar = me.find('region', 'Selection');
      await bar.reads(/All 120 matching jobs selected/);
      await bar.find('button', action).click();
    };
    await me.go('Scheduled');
    await me.filter('class:BulkJob');

    await begin('Kill');
    await me.dialog.reads(/Applies to the 120 scheduled jobs you saw; newer ones are not affected/);
    await me.dialog.reads(/Filter class: BulkJob Reason/);
    const kill = me.dialog.find('button', 'Kill 120 scheduled jobs');
    assert.ok(await kill.disabled(), 'over a hundred: their number must be typed');
    await me.dialog.find('textbox', /^Type 120/).fill('120');
    await me.dialog.find('textbox', /^Reason/).fill('a test');
    await kill.click();
    await done(me, 'Kill 120 scheduled jobs', 120);
    await me.find('region', 'scheduled jobs').reads(/No matches in [\d,]+ jobs/);
    await me.operation('Kill 120 scheduled jobs').find('button', 'Undo').click();
    await done(me, /^(Undo|Restored) 120 scheduled jobs/, 120);
    await me.operation(/^Restored 120 scheduled jobs/).seen();
    await me.tidy();

    await begin('Reschedule');
    await me.dialog.find('button', 'In 7 d').click();
    await me.dialog.reads(/Due at \d{4}-\d\d-\d\d \d\d:\d\d:00 [+−]\d\d:\d\d · in (6 d 23 h|7 d)/);
    await me.dialog.find('button', 'Reschedule 120 scheduled jobs').click();
    await done(me, 'Reschedule 120 scheduled jobs', 120);
    const first = me.find('table', 'scheduled jobs').find('row').nth(1);
    await first.reads(/in (6 d 23 h|7 d)/);
    await me.operation('Reschedule 120 scheduled jobs').find('button', 'Undo').click();
    await done(me, /^(Undo|Restored) 120 scheduled jobs/, 120);
    await me.tidy();
    await first.reads(/in (1 d|24 h|25 h)/);

    await begin('Run now');
    await me.dialog.find('button', 'Run 120 scheduled jobs').click();
    await done(me, 'Run 120 scheduled jobs', 120);
    assert.equal(await me.operation('Run 120 scheduled jobs').find('button', 'Undo').count(), 0, 'what has run cannot be taken back');
    await me.find('region', 'scheduled jobs').find('button', 'Clear filters').click();
    await me.filter('class:BulkBystander');
    await me.listed.reads(/^1–7 of 7 matching/);
    await me.find('link', 'Last operation').click();
    await me.find('table', 'Operations').find('row', /^Kill 120 scheduled jobs/).seen();
  });

  for (const [set, link, stream, noun, actions, last] of [['retries', 'Retries', 'retries', 'retries', ['Reschedule', 'Kill', 'Delete'], 'Retry now'],
    ['dead-jobs', 'Dead', 'dead_jobs', 'dead jobs', ['Delete'], 'Retry now']]) {
    const verbs = { 'Reschedule': 'Reschedule', Kill: 'Kill', Delete: 'Delete', 'Retry now': 'Retry' };
    story(world, `${noun} by error: one row is one decision, and its undo`, async (me) => {
      const error = 'BulkError' + link;
      for (let i = 0; i < 3; i++) {
        const jid = error + i;
        const record = { type: set === 'retries' ? 'retry' : 'dead_job', jid, retry_count: 1, error_class: error, error_message: 'it does not go',
          job: { jid, class: 'BulkFails', queue: 'bulk', args: [i], retry: 5 }, ...(set === 'retries' ? { retry_at: now() + 9000 } : { died_at: now() }) };
        await world.publish(stream, record);
      }
      await until('they are read', async () => (await http(`${world.base}/api/${set}?page=1&error=${error}`)).filtered_count_at_least === 3);
      await me.go(link);
      await me.find('group', 'View').find('button', 'By error').click();
      const row = me.find('table', 'Errors').find('row', new RegExp(error));
      for (const action of actions) {
        await row.reads(/ 3 /);
        await row.find('button', `${action} all 3 with ${error} of BulkFails`).click();
        await me.dialog.reads(new RegExp(`Filter error: ${error} in BulkFails: it does not go`));
        await me.dialog.find('button', `${verbs[action]} 3 ${noun}`).click();
        const name = `${verbs[action]} 3 ${noun}`;
        await done(me, name, 3);
        if (action === 'Reschedule') await row.reads(/in (1 h|59 min)/);
        else await row.gone();
        await me.operation(name).find('button', 'Undo').click();
        await done(me, new RegExp(`^(Undo|Restored) 3 ${noun}`), 3);
        if (action === 'Reschedule') await row.reads(/in 2 h/); // the action affects what is shown
        await me.tidy();
      }
      await row.reads(/ 3 /);
      await row.find('link', error).click();
      await me.listed.reads(/^1–3 of 3 matching/);
      await me.find('search').reads(new RegExp(`^error: ${error} in BulkFails: it does not go$`));
      await me.back();
      await row.find('button', new RegExp(`^${last} all 3`)).click();
      await me.dialog.find('button', `Retry 3 ${noun}`).click();
      await done(me, `Retry 3 ${noun}`, 3);
      await row.gone();
      await me.find('link', 'Last operation').click();
      // None of its jobs is left in the list.
      await me.find('table', 'Operations').find('row', new RegExp(`Retry 3 ${noun}.* error: ${error} in BulkFails: it does not go `)).seen();
    });
  }

  story(world, 'what comes after one has looked is left alone: under an id that is chosen, and in a group', async (me) => {
    const die = (jid, message) => world.publish('dead_jobs',
      { type: 'dead_job', jid, died_at: now(), retry_count: 3, error_class: 'BulkLate', error_message: message, job: { jid, class: 'BulkLate', queue: 'bulk', args: [message], retry: 3 } });
    const left = (n) => there('dead-jobs', 'class=BulkLate', n);
    await die('late-1', 'first');
    await die('late-2', 'first');
    await left(2);
    await me.go('Dead');
    await me.find('checkbox', 'Select all on this page').check();
    const bar = me.find('region', 'Selection');
    await bar.find('button', /^Select all \d+ matching$/).click();
    await bar.find('button', 'Delete').click();
    await me.dialog.reads(/Filter none \(all dead jobs\)/);
    await me.dialog.find('button', 'Cancel').click();
    await bar.find('button', 'Clear').click();
    await me.filter('class:BulkLate');
    await me.listed.reads(/^1–2 of 2 matching/);
    await me.find('checkbox', 'Select all on this page').check();
    await die('late-1', 'it came back');
    await left(3);
    await me.find('region', 'Selection').find('button', 'Delete').click();
    await me.dialog.find('textbox', /^Reason/).fill('déjà vu');
    await me.dialog.find('button', 'Delete 2 dead jobs').click();
    await done(me, 'Delete 2 dead jobs', 2);
    await left(1);
    await me.tidy();

    await me.find('group', 'View').find('button', 'By error').click();
    const row = me.find('table', 'Errors').find('row', /BulkLate/);
    await row.reads(/ 1 /);
    await me.find('button', 'Live updates').click();
    await die('late-3', 'it came back');
    await left(2);
    await row.find('button', /^Delete all 1 with BulkLate/).click();
    await me.dialog.find('button', 'Delete 1 dead job').click();
    await done(me, 'Delete 1 dead job', 1);
    await left(1);
    assert.equal((await http(`${world.base}/api/dead-jobs?class=BulkLate&page=1`)).items[0].jid, 'late-3');
  });

  story(world, 'a reason is kept letter by letter', async (me) => {
    await http(`${world.base}/api/jobs`, 'POST', { jid: 'reasoned', class: 'BulkReason', queue: 'bulk', args: [], at: now() + 90_000 });
    await there('scheduled-jobs', 'class=BulkReason', 1);
    await me.go('Scheduled');
    await me.filter('class:BulkReason');
    await me.find('button', /^Delete: BulkReason/).click();
    await me.dialog.find('textbox', /^Reason/).fill('Zoë såg det – 見た');
    await me.dialog.find('button', 'Delete 1 job').click();
    await me.find('region', 'scheduled jobs').reads(/No matches in [\d,]+ jobs/);
    await me.go('Operations');
    await me.find('tab', 'Audit log').click();
    await me.find('table', 'Audit log').find('row', /reasoned.*Zoë såg det – 見た/).seen();
  });

  story(world, 'an operation that is not heard of is given up, and said to be', async (me) => {
    await http(`${world.base}/api/jobs`, 'POST', Array.from({ length: 2 }, (_, i) => ({ class: 'BulkLost', queue: 'bulk', args: [i], at: now() + 90_000 + i })));
    await there('scheduled-jobs', 'class=BulkLost', 2);
    await me.go('Scheduled');
    await me.filter('class:BulkLost');
    await me.find('checkbox', 'Select all on this page').check();
    await me.find('region', 'Selection').find('button', 'Delete').click();
    await me.dialog.find('button', 'Delete 2 scheduled jobs').click();
    await me.operation('Delete 2 scheduled jobs').gone();
    await me.notes.reads(/no answer for a minute/);
    await me.notes.find('link', 'All operations').click();
    await me.find('heading', 'Operations', { level: 1 }).seen();
  }, { prepare: unheard });

  story(world, 'an operation is stopped from the list of them; what it did can be taken back, and is in the journal', async (me) => {
    await http(`${world.base}/api/jobs`, 'POST', Array.from({ length: 30 }, (_, i) => ({ class: 'BulkSlow', queue: 'bulk', args: [i], at: now() + 90_000 + i })));
    await there('scheduled-jobs', 'class=BulkSlow', 30);
    await http(`${world.base}/api/operations`, 'POST', { action: 'delete', set: 'scheduled-jobs', filter: { class: 'BulkSlow' }, expected_count: 30, rate: 1, reason: 'slow on purpose' });
    await me.go('Operations');
    const row = me.find('table', 'Operations').find('row', /^Delete 30 scheduled jobs/);
    await row.reads(/[1-9]\d* of 30 done/);
    await row.find('button', 'Stop').click();
    await row.reads(/cancelled/);
    await row.find('button', 'Undo').click();
    await row.reads(/undone/);
    await me.find('tab', 'Audit log').click();
    const journal = me.find('table', 'Audit log');
    await journal.find('row', /guest.*slow on purpose/).seen();
    await me.filter('actor:unknown');
    await me.find('region', 'Audit log').reads(/No matching actions/);
    await me.find('button', 'Remove filter actor').click();
    await journal.find('row', /guest/).seen();
    await http(`${world.base}/api/jobs`, 'POST', Array.from({ length: 220 }, (_, i) => ({ class: 'BulkMany', queue: 'bulk', args: [i], at: now() + 90_000 + i })));
    await there('scheduled-jobs', 'class=BulkMany', 220);
    await http(`${world.base}/api/operations`, 'POST', { action: 'delete', set: 'scheduled-jobs', filter: { class: 'BulkMany' }, expected_count: 220 });
    await journal.find('row', /guest Delete: done 220 jobs/).seen();
    assert.equal(await journal.find('row', /220 jobs/).count(), 1, 'one row an operation');
    await journal.find('link', '220 jobs').click();
    await until('its jobs are listed', () => /^\/operations\?tab=audit&operation=[A-Z2-7]+$/.test(me.address()));
    await me.listed.reads(/^200 actions shown/);
    await journal.find('row', /guest deleted \w+ scheduled jobs/).first().seen();
    await me.find('button', 'Older').click();
    await me.listed.reads(/^22 actions shown/);
    await me.find('button', 'Newest').click();
    await me.find('button', 'Newest').gone();
  });

  story(world, 'what was done to a queue is in the journal, for this queue alone', async (me) => {
    for (const how of ['PUT', 'DELETE']) {
      for (const queue of ['audited', 'audited-not']) await http(`${world.base}/api/job-queues/${queue}`, how);
    }
    await until('it is read', async () => (await http(`${world.base}/api/journal?queue=audited`)).items.length === 2);
    await me.go('Operations');
    await me.find('tab', 'Audit log').click();
    await me.filter('queue:audited');
    await until('it is in the address', () => me.address() === '/operations?tab=audit&queue=audited');
    const journal = me.find('table', 'Audit log');
    await journal.find('row', /guest queue created audited /).seen();
    assert.deepEqual((await journal.find('link').texts()).filter((t) => t !== 'audited'), []);
    await journal.find('row', /guest queue deleted audited /).seen();
    await me.filter('op:made');
    await journal.find('row', /queue deleted/).gone();
    await me.filter('from:-1h');
    await journal.find('row', /guest queue created audited /).seen();
    await me.find('button', 'Copy as curl').click();
    await me.copied(/\/api\/journal\?op=made&queue=audited&from=-1h&collapse=operations&limit=200'$/);
    await me.find('button', 'Remove filter from').click();
    await me.filter('to:-1h');
    await me.find('region', 'Audit log').reads(/No matching actions/);
    await me.find('button', 'Remove filter to').click();
    await journal.find('row', /guest queue created audited /).seen();
    assert.equal(await me.saves(() => me.find('link', 'Download as CSV').click()), 'journal.csv');
  });
}
