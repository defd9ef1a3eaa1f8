// The tasks of an operator, as nine stories. Each uses only the tools of a person: no addresses,
// requests or test ids. This file may import nothing that uses those.
import assert from 'node:assert/strict';

/**
 * Returns the number in the text below a filtered list.
 * @param {import('./person.js').Person} me
 * @param {RegExp} pattern
 */
const many = async (me, pattern) => (await me.listed.reads(pattern))[1];

/** @type {[string, (me: import('./person.js').Person) => Promise<void>][]} */
export const stories = [
  ['why does this queue stand still?', async (me) => {
    await me.find('region', 'Needs attention').find('link', /Queue archive: \d+ jobs wait and no worker consumes the queue$/).click();
    await me.find('heading', /archive$/, { level: 1 }).seen();
    await me.find('alert').reads(/\d+ jobs wait and no workers consume this queue/);
    await me.find('main').reads(/archive \d+ ready/);
    await me.find('tab', 'Workers (0)').click();
    await me.find('region', 'Workers').reads(/No workers consume this queue/);
    await me.find('tab', 'Jobs').click();
    await me.find('main').reads(/Peeking fetches and requeues messages, which marks them as redelivered\./);
    await me.find('button', 'Peek 20').click();
    await me.find('table', 'Next jobs in the queue').find('row').nth(1).reads(/^ArchiveOrders \[20\d\d,\d+\] /);
  }],

  ['retry all timeouts of one class of the last hour, spread over ten minutes, and stop half-way', async (me) => {
    await me.go('Dead');
    await me.filter('error:SMTPAuthenticationError');
    const others = await many(me, /of (3\d) matching/);
    for (const term of ['error:Timeout', 'class:SyncInventory', 'died:<1h']) await me.filter(term);
    assert.match(me.address(), /&from=-1h$/, 'a link to it stays true');
    await me.listed.reads(/^1–50 of 60 matching/);
    await me.find('checkbox', 'Select all on this page').check();
    await me.find('button', 'Select all 60 matching').click();
    await me.find('region', 'Selection').find('button', 'Retry now').click();
    await me.dialog.find('textbox', /^Spread over minutes/).fill('10');
    await me.dialog.find('button', 'Retry 60 dead jobs').click();
    const operation = me.operation(/^Retry 60 dead jobs/);
    await operation.reads(/[1-9]\d* of 60 done/);
    await operation.find('button', 'Stop').click();
    await operation.pointAt();
    await operation.reads(/cancelled/);
    await me.pointAway();
    await me.find('button', 'Remove filter from').click();
    // The older ones, and those that it had not reached.
    await me.listed.reads(/^1–50 of ([3-6]\d|7\d) matching/);
    await me.find('button', 'Remove filter class').click();
    await me.filter('error:SMTPAuthenticationError');
    await me.listed.reads(new RegExp(`of ${others} matching`));
  }],

  ['find a job by its id and read its timeline', async (me) => {
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('dead-invoice-1');
    await me.find('option', /open the job/).click();
    await me.find('heading', /SendInvoice dead-invoice-1/, { level: 1 }).seen();
    const timeline = me.find('region', 'Timeline').find('listitem');
    await timeline.last().reads(/^Dead/);
    const lines = (await timeline.texts()).filter((line) => /Attempt/.test(line));
    assert.equal(lines.length, 3);
    for (const [i, line] of lines.entries()) assert.match(line, new RegExp(`^Attempt ${i + 9}${i < 2 ? '' : ' of 11'} failed.*web-1:4711:shop.*ran .*SMTPAuthenticationError`));
    assert.deepEqual(await timeline.find('link', 'web-1:4711:shop').texts(), Array(3).fill('web-1:4711:shop'));
    await me.find('region', 'Error').reads(/535 5\.7\.8 Authentication credentials invalid/);
    // Which JSON.parse would round.
    await me.find('region', 'the arguments').reads(/9007199254740993/);
  }],

  ['undo a wrong “delete all”', async (me) => {
    await me.go('Dead');
    await me.filter('class:SyncInventory');
    const others = await many(me, /of (\d\d) matching/);
    await me.find('button', 'Remove filter class').click();
    await me.filter('queue:mails');
    const all = await many(me, /of (3\d) matching/);
    await me.find('checkbox', 'Select all on this page').check();
    await me.find('region', 'Selection').find('button', 'Delete').click();
    await me.dialog.find('button', 'Cancel').focused(); // the safe answer
    await me.dialog.reads(/You can undo this\./);
    await me.dialog.find('button', `Delete ${all} dead jobs`).click();
    const deletion = me.operation(`Delete ${all} dead jobs`);
    await deletion.pointAt();
    await me.find('region', 'dead jobs').reads(/No matches in [\d,]+ jobs/);
    await deletion.reads(new RegExp(`${all} of ${all} done`));
    await me.find('button', 'Clear filters').click();
    await me.filter('class:SyncInventory');
    await me.listed.reads(new RegExp(`of ${others} matching`));
    await me.go('Operations');
    const row = me.find('table', 'Operations').find('row', new RegExp(`^Delete ${all} dead jobs`));
    await row.find('button', 'Undo').click();
    const undo = me.operation(new RegExp(`^(Undo|Restored) ${all} dead jobs`));
    await undo.pointAt();
    await undo.reads(new RegExp(`${all} of ${all} done`));
    await row.reads(/undone/);
    await row.find('button', 'Undo').gone();
    await me.go('Dead');
    await me.filter('queue:mails');
    await me.listed.reads(new RegExp(`of ${all} matching`));
  }],

  ['which worker is stuck, and on what?', async (me) => {
    await me.go('Processes');
    const table = me.find('table', 'Worker processes');
    await table.find('button', 'Longest job').click();
    await table.find('row').nth(1).reads(/worker-2:822.* Stuck 3 h/);
    await table.find('row').nth(1).find('link', 'worker-2:822').click();
    await me.find('heading', /worker-2:822/, { level: 1 }).seen();
    await me.find('table', 'Running jobs').find('row').nth(1).reads(/DailyReport report-that-hangs reports Stuck · \d+× usual 3 h/);
  }],

  ['a release made a class slower', async (me) => {
    await me.go('Metrics');
    await me.find('button', '24h').click();
    await me.find('table', 'Classes').find('link', 'SendInvoice').click();
    await me.find('group', 'Range').find('button', '6h').click();
    await me.find('region', 'In this range').reads(/p95.*\+\d+ % vs before/);
    await me.find('figure', /^Run time\. .*Deploys: v2\.4/).seen();
    await me.find('button', 'Table of Run time', { exact: true }).click();
    await me.find('table', 'Run time').find('row').nth(5).seen();
  }],

  ['reschedule tomorrow’s closing', async (me) => {
    await me.go('Scheduled');
    await me.filter('class:MonthlyClosing');
    await me.find('button', 'Change: MonthlyClosing closing-december').click();
    await me.dialog.find('button', 'In 7 d').click();
    await me.dialog.find('button', 'Change').click();
    await me.pointAtNotes();
    await me.find('cell', /^in (6 d 23 h|7 d)/).seen();
    await me.notes.find('button', 'Undo').click();
    await me.pointAway();
    await me.find('cell', /^in (23 h|24 h|1 d)/).seen();
  }],

  ['edit a dead job’s arguments and run it again', async (me) => {
    await me.go('Dead');
    await me.filter('jid:dead-invoice-1');
    await me.find('table', 'dead jobs').find('link', 'SendInvoice').click();
    await me.find('button', 'Change').click();
    const field = me.dialog.find('textbox', 'Arguments');
    assert.match(await field.value(), /9007199254740993/);
    await field.fill('[{"invoice": 9007199254740995, "to": "bob@example.com"}]');
    await me.dialog.find('textbox', /^Reason/).fill('a typo');
    await me.dialog.find('checkbox', 'Retry it now').check();
    await me.dialog.find('button', 'Change and retry').click();
    await me.notes.reads(/: enqueued/);
    await me.find('region', 'Location').reads(/Queued or running Enqueued in mails .*No workers consume the queue/);
    const timeline = me.find('region', 'Timeline').find('listitem');
    await timeline.last().reads(/^Enqueued for another attempt .*by guest/);
    await timeline.nth(await timeline.count() - 2).reads(/^Changed arguments .*by guest “a typo”/);
    await me.find('button', 'Show the changed arguments').click();
    await me.find('group', 'Changes').reads(/9007199254740993.*9007199254740995/);
    await me.find('region', 'the arguments').reads(/9007199254740995/); // as it was sent
  }],

  ['quiet a worker', async (me) => {
    await me.go('Processes');
    await me.find('searchbox', 'Filter processes').fill('side');
    const row = me.find('table', 'Worker processes').find('row').nth(1);
    await row.reads(/ live side /);
    await row.find('link', /:\d+$/).click();
    await me.find('button', 'Quiet').click();
    await me.dialog.reads(/takes no new ones\. To undo this, restart the process\. .*This is the only worker of: side/);
    await me.dialog.find('button', 'Quiet 1 process').click();
    await me.notes.reads(/Quiet requested for 1 process/);
    await me.find('link', 'Worker processes', { exact: true }).click();
    await me.find('searchbox', 'Filter processes').fill('side');
    await row.reads(/ quiet side /);
    assert.ok(await row.find('button', /^Quiet/).disabled());
  }],
];
