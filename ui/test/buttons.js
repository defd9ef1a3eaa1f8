// All other buttons: display, copy, save, fold, sort, and pause.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until } from './sidecar.js';

export function buttons(world) {
  const pressed = (thing) => until('it is pressed', async () => await thing.state('pressed') === 'true');

  story(world, 'the frame: menu, theme, rows, times, navigation, updates, palette', async (me) => {
    await me.find('button', 'Menu of guest').click();
    const menu = me.find('group', 'Menu');
    for (const name of ['Dark', 'Light', 'System', 'Compact', 'Comfortable', 'UTC']) {
      await menu.find('button', name, { exact: true }).click();
      await pressed(menu.find('button', name, { exact: true }));
    }
    await me.press('Escape');
    await menu.gone();
    await me.go('Scheduled');
    await me.find('table', 'scheduled jobs').find('row').nth(1).reads(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    await me.find('button', 'Menu of guest').click();
    await menu.find('button', 'Local', { exact: true }).click();
    await menu.find('button', 'Relative', { exact: true }).click();
    await menu.find('button', 'Keyboard shortcuts').click();
    await me.find('dialog', 'Keyboard shortcuts').find('button', 'Close').click();
    await me.find('dialog', 'Keyboard shortcuts').gone();

    const fold = me.find('navigation', 'Main').find('button', 'Collapse');
    await fold.click();
    await pressed(fold);
    await me.go('Retries'); // a collapsed link still has its name
    await fold.click();

    const live = me.find('button', 'Live updates');
    await live.click();
    assert.equal(await me.find('button', 'Paused updates').state('pressed'), 'false');
    await me.press('p');
    await live.seen();

    await me.find('button', /^Search/).click();
    await me.find('combobox', 'Search and commands').fill('sendinvoice');
    await me.find('option', 'SendInvoice class').click();
    await me.find('heading', /SendInvoice$/, { level: 1 }).seen();
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill('archive');
    await me.find('option', 'archive queue').seen();
    await me.press('ArrowDown');
    await me.press('ArrowUp');
    await me.press('Enter');
    await me.find('heading', /archive$/, { level: 1 }).seen();
    await me.find('link', 'Millrace, to the dashboard').click();
    await me.find('heading', 'Dashboard', { level: 1 }).seen();
  });

  story(world, 'a list: columns, order, pages, what it asked and what it has', async (me) => {
    await me.go('Dead');
    await me.filter('class:SyncInventory');
    await me.find('button', 'Columns').click();
    const columns = me.find('group', 'Columns shown');
    await columns.find('checkbox', 'Arguments').check();
    await columns.find('checkbox', 'Reason').uncheck();
    await me.press('Escape');
    await columns.gone();
    await me.find('columnheader', 'Arguments').seen();
    assert.equal(await me.find('columnheader', 'Reason').count(), 0);
    await me.find('combobox', 'Rows per page').choose('20');
    await me.listed.reads(/^1–20 of/);
    await me.find('button', 'Next page').click();
    await me.listed.reads(/^21–/);
    assert.equal(me.address(), '/dead-jobs?class=SyncInventory&page_size=20&page=2');
    await me.find('button', 'Previous page').click();
    await me.listed.reads(/^1–20 of/);
    assert.ok(await me.find('button', 'Previous page').disabled());
    await me.find('button', 'Copy as curl').click();
    await me.notes.reads(/Copied as curl/);
    await me.copied(/^curl -u USER 'http:\/\/127\.0\.0\.1:\d+\/api\/dead-jobs\?class=SyncInventory&page=1&page_size=20'$/);
    assert.equal(await me.saves(() => me.find('link', 'Download as NDJSON').click()), 'dead-jobs.ndjson');
    assert.equal(await me.saves(() => me.find('link', 'Download as CSV').click()), 'dead-jobs.csv');
    await me.find('table', 'dead jobs').find('checkbox').nth(1).check();
    await me.find('region', 'Selection').find('button', 'Clear').click();
    await me.find('region', 'Selection').gone();
    await me.find('table', 'dead jobs').find('row').nth(1).find('link', 'Timeout').click();
    await me.listed.reads(/matching/);
    assert.match(me.address(), /error=Timeout/);

    await me.go('Dashboard');
    const queues = me.find('table', 'Queues');
    await queues.find('button', 'Name').click();
    const names = async () => (await queues.find('rowheader').texts());
    await until('they are in order', async () => { const all = await names(); return all.length > 3 && all.join() === [...all].sort().join(); });
    await queues.find('button', 'Name').click();
    await until('they are in the other order', async () => { const all = await names(); return all.join() === [...all].sort().reverse().join(); });
    assert.equal(await me.find('columnheader', 'Name').state('sort'), 'descending');
    await me.find('searchbox', 'Filter queues by name').fill('no queue has this name');
    await me.find('region', 'Queues').find('button', 'Clear filter').click();
    await queues.find('link', 'archive').seen();
  });

  story(world, 'rows do not move under the pointer: what comes waits behind a button', async (me) => {
    const plant = (jid, at) => http(`${world.base}/api/jobs`, 'POST', { jid, class: 'StillHere', queue: 'bulk', args: [], at: Date.now() / 1000 + at });
    await plant('still-2', 90_000);
    await me.go('Scheduled');
    await me.filter('class:StillHere');
    const rows = me.find('table', 'scheduled jobs').find('row');
    await me.listed.reads(/^1 matching/);
    await rows.nth(1).pointAt();
    await plant('still-1', 80_000); // its row would be above the others
    await me.find('button', 'Show 1 new').seen();
    assert.equal(await rows.count(), 2);
    await me.find('button', 'Show 1 new').click();
    await until('both are there', async () => await rows.count() === 3);
    await me.pointAway();
    await me.find('checkbox', 'Select all on this page').check();
    await http(`${world.base}/api/scheduled-jobs/still-1`, 'DELETE');
    await me.listed.reads(/^1 matching/);
    assert.equal(await rows.count(), 3, 'what is gone stays, struck through, while rows are selected');
    await me.find('region', 'Selection').find('button', 'Clear').click();
    await until('it is gone', async () => await rows.count() === 2);
  });

  story(world, 'an undo that was overtaken is offered no longer', async (me) => {
    await http(`${world.base}/api/jobs`, 'POST', { jid: 'overtaken', class: 'Overtaken', queue: 'bulk', args: [], at: Date.now() / 1000 + 90_000 });
    await me.go('Scheduled');
    await me.filter('class:Overtaken');
    await me.find('button', 'Change: Overtaken overtaken').click();
    await me.dialog.find('button', 'In 7 d').click();
    await me.dialog.find('button', 'Change').click();
    await me.notes.find('button', 'Undo').seen();
    await me.pointAtNotes();
    await me.find('cell', /^in (6 d 23 h|7 d)/).seen();
    await me.find('button', 'Run now: Overtaken overtaken').click();
    await me.notes.reads(/Overtaken overtake: enqueued/);
    assert.equal(await me.notes.find('button', 'Undo').count(), 0);
  });

  story(world, 'a job: its record in three ways, its backtrace, its copy, and what was done to it taken back', async (me) => {
    await me.go('Retries');
    await me.filter('class:SyncInventory');
    await me.find('table', 'retries').find('row').nth(1).find('link', 'SyncInventory').click();
    await me.find('button', 'Copy ID').click();
    const jid = await me.copied(/^\w+5eed$/);
    await me.find('heading', new RegExp(jid), { level: 1 }).seen();
    const [facts] = await me.find('region', 'Retry').reads(/.*Failed attempts ([1-6]) of 11 Next backoff at least \d+.*/);
    assert.doesNotMatch(facts, /Offset|State/);
    assert.deepEqual(await me.find('region', 'Retry').find('button').texts(), ['Retry now', 'Change', 'Run a copy', 'Kill', 'Delete']);
    const shown = me.find('region', 'the arguments');
    await shown.reads(/"warehouse-\d"/);
    await shown.find('button', 'Fold args').click();
    await shown.reads(/2 …/);
    await shown.find('button', 'Unfold args').click();
    const as = me.find('group', 'the arguments, as');
    await as.find('button', 'Hex').click();
    await shown.reads(/^000000 5b 22 77 61/);
    await as.find('button', 'Raw').click();
    await shown.reads(/^\["warehouse-\d",\d+\]$/);
    await me.find('button', 'Copy the arguments').click();
    await me.copied(/^\["warehouse-\d",\d+\]$/);
    await me.find('button', 'Show the record').click();
    assert.equal(await me.saves(() => me.find('button', 'Download the record').click()), jid + '.json');
    await me.find('button', 'Hide the record').click();
    await me.find('button', 'Download the record').gone();
    await as.find('button', 'Pretty').click();
    await me.find('searchbox', 'Find in the arguments').fill('ware');
    const trace = me.find('region', 'Backtrace');
    await trace.reads(/… 2 library frames/);
    await me.find('group', 'Backtrace').find('button', 'Full').click();
    await trace.reads(/net\/protocol\.rb:219/);
    await me.find('group', 'Backtrace').find('button', 'Clean').click();
    await me.find('button', 'Copy error').click();
    await me.copied(/^Timeout: no answer from[^]*perform/);

    await me.find('button', 'Run a copy').click();
    await me.dialog.find('button', 'Run a copy').click();
    await me.pointAtNotes();
    await me.notes.reads(/Copy enqueued/);
    await me.notes.find('link', 'Show').click();
    await me.find('heading', new RegExp(jid), { level: 1 }).gone();
    await me.back();
    await me.find('heading', new RegExp(jid), { level: 1 }).seen();
    const story = me.find('region', 'Timeline');
    await me.find('button', 'Kill').click();
    await me.find('region', 'Dead').reads(/Died/);
    await story.reads(/Moved to dead jobs.*by guest/);
    await story.find('button', 'Undo').click();
    await me.find('region', 'Retry').reads(/Due in/);
    await story.reads(/Restored to retries.*by guest.*Waits for attempt/);
    await me.find('link', /^\d+ jobs with this error$/).click();
    await me.find('table', 'retries').find('row').nth(2).seen();
    assert.match(me.address(), /^\/retries\?error=fp-[0-9a-f]+$/);
  }, { expected: /api\/jobs\// }); // nothing is known of the copy yet

  story(world, 'what is copied as curl asks for what is shown; what a class did last', async (me) => {
    await me.go('Operations');
    await me.find('tab', 'Audit log').click();
    await me.filter('actor:guest');
    await until('it is filtered', () => me.address() === '/operations?tab=audit&actor=guest');
    await me.find('button', 'Copy as curl').click();
    await me.copied(/\/api\/journal\?actor=guest&collapse=operations&limit=200'$/);
    await me.go('Processes');
    await me.find('searchbox', 'Filter processes').fill('worker-2');
    await me.find('button', 'Copy as curl').click();
    await me.copied(/\/api\/processes\?page=1&page_size=500' \| jq '\.items\[\] \| select\(.*contains\("worker-2"\)\)'$/);

    await me.go('Metrics');
    await me.find('table', 'Classes').find('link', 'SendInvoice').click();
    const run = me.find('table', 'Recent runs').find('row').nth(1);
    await run.reads(/ (success|failed|dead) .*web-1:4711:shop/);
    assert.equal(await me.find('table', 'Recent runs').find('row').count(), 21);
  });

  story(world, 'the live page: held, filtered, cleared', async (me) => {
    await me.go('Live');
    const log = me.find('log', 'Runs');
    await log.find('link', /SendEmail|ResizeImage/).first().seen();
    await me.find('button', 'Pause', { exact: true }).click();
    const before = await log.text();
    const came = async () => Number((await me.find('region', 'Live runs').reads(/shown of ([\d,]+)/))[1].replaceAll(',', ''));
    const n = await came();
    await until('more has come', async () => await came() > n);
    assert.equal(await log.text(), before, 'held');
    await me.find('button', 'Resume', { exact: true }).click();
    await until('it continues', async () => await log.text() !== before);
    await me.find('searchbox', 'Filter runs').fill('chargecard');
    await until('those alone', async () => { const all = await log.find('link').texts(); return all.length > 1 && all.every((t) => ['ChargeCard', 'demo.critical'].includes(t)); });
    await me.find('button', 'Clear').click();
    await me.find('searchbox', 'Filter runs').fill('no run has this');
    await log.reads(/No matching runs/);
  });

  story(world, 'the API’s reference; one job of a queue’s head; ranges', async (me) => {
    await me.go('HTTP API');
    await me.find('searchbox', 'Filter routes').fill('undo');
    const entries = me.find('region', 'entries');
    await entries.reads(/\/api\/retries\/\{jid\}\/undo/);
    await entries.find('group').first().click();
    await entries.find('group', 'Status').find('button').last().click();
    await entries.find('button', 'Copy as curl').click();
    await me.copied(/^curl -u USER -X POST '.*undo'/);
    await me.find('searchbox', 'Filter routes').fill('extend a lease');
    const leases = me.find('region', 'leases');
    await leases.find('group').first().click();
    await leases.reads(/Body .*Example \{ "lease_ms": 120000 \} Responses/);
    await leases.find('button', 'Copy as curl').click();
    await me.copied(/ -X POST '.*\/extend' -H 'Content-Type: application\/json' -d '\{"lease_ms":120000\}'$/);

    await me.go('Dashboard');
    for (const range of ['15m', '6h', '7d', '30d', '24h', '1h']) {
      const button = me.find('group', 'Range').first().find('button', range, { exact: true });
      await button.click();
      await pressed(button);
    }
    await me.find('region', 'Due').find('button', '7d').click();
    await pressed(me.find('region', 'Due').find('button', '7d'));
    await me.find('region', 'Top errors').find('link', 'All errors').click();
    await me.find('table', 'Errors').find('row').nth(1).seen();
    await me.go('Dashboard');
    await me.find('table', 'Queues').find('link', 'archive').click();
    await me.find('tab', 'Jobs').click();
    await me.find('button', 'Peek 20').click();
    await me.find('button', 'Show job 1', { exact: true }).click();
    await me.find('region', 'Job 1', { exact: true }).reads(/"class": "ArchiveOrders"/);
  });
}
