// The tasks of an operator, each from the dashboard on, with no more clicks and keys than it may
// take. Where a row of this list has no number of keys, the user may type.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { task } from './person.js';
import { http, until, work } from './sidecar.js';

const now = () => Date.now() / 1000;
/** How often the dashboard asks for problems, in milliseconds. */
const asks = 10_000;
const jobPage = async (me, jid) => {
  await me.press('Control+k');
  await me.find('combobox', 'Search and commands').focused();
  await me.paste(jid);
  await me.find('option', /open the job/).seen();
  await me.press('Enter');
  await me.find('heading', new RegExp(jid), { level: 1 }).seen();
};
const attention = (me) => me.find('region', 'Needs attention');
/**
 * Returns a problem's link on the dashboard, which shows eight problems and the others when asked.
 * Other tests may cause problems meanwhile that come first.
 * @param {any} me
 * @param {string|RegExp} name
 */
export async function problem(me, name) {
  const link = attention(me).find('link', name);
  const more = attention(me).find('link', /^and \d+ more$/);
  await until(`the problem ${name} is listed`, async () => {
    if (await link.count()) return true;
    if (await more.count()) await more.click();
    return false;
  });
  return link;
}
/** Waits until an operation has ended. */
const done = (me, name, n) => me.operation(name).reads(new RegExp(`${n} of ${n} done`));

/**
 * Starts a worker all slots of which are taken by jobs that hang. The sidecar, which has the default
 * settings, reports the queue while other tests run: `world.stuck` is after how many milliseconds.
 * @param {any} world
 */
export async function hang(world) {
  const api = (/** @type {string} */ path, method = 'GET', body = undefined) => http(`${world.base}/api/${path}`, method, body);
  const worker = await work(world, '', 'hanging', ['queues: [exports]', 'concurrency: 2', 'classes: {Export: {command: [sleep, "86400"]}}']);
  let over = false;
  world.ends.push(async () => {
    over = true;
    await api('job-queues/exports/jobs', 'DELETE').catch(() => {});
    const running = (await api('processes').catch(() => [])).filter((p) => p.tag === 'hanging').flatMap((p) => p.work);
    for (const { jid } of running) await api(`jobs/${jid}/cancel`, 'POST').catch(() => {});
    await worker.stop();
  });
  await api('jobs', 'POST', [1, 2, 3, 4, 5].map((n) => ({ jid: `export-${n}`, class: 'Export', queue: 'exports', args: [n] })));
  const began = Date.now();
  world.stuck = until('the queue is reported', async () => {
    await sleep(1000);
    return over || (await api('attention')).items.some((i) => i.kind === 'saturated' && i.subject === 'exports') && Date.now() - began;
  }, 130_000);
  world.stuck.catch(() => {}); // the test that waits for it fails
}

/** Jobs of one class that just died of the same error. @param {any} world */
async function die({ base, publish }) {
  const jids = Array.from({ length: 12 }, (_, i) => 'stock-' + i);
  const [job_class, queue, error_class] = ['CheckStock', 'archive', 'NoRoute'];
  for (const jid of jids) {
    await publish('dead_jobs', { type: 'dead_job', jid, died_at: now(), retry_count: 3, error_class, error_message: 'no route to the warehouse',
      job: { jid, class: job_class, queue, args: [], retry: 3 } });
  }
  await publish('job_metrics', jids.map((jid) => ({ type: 'job_metric', timestamp: now(), jid, job_class, queue, duration_ms: 40, status: 'dead',
    worker_identity: 'worker-1:4711:shop', attempt: 4, error_class })));
  await until('they are counted', async () => (await http(`${base}/api/errors?set=dead-jobs&class=${job_class}`)).items[0]?.count === jids.length
    && (await http(`${base}/api/attention`)).items.some((i) => i.kind === 'dead_growth'));
}

/** A job that was changed, deleted, restored and run. @param {any} world */
async function live({ base }) {
  const jid = 'much-happened';
  await http(`${base}/api/jobs`, 'POST', { jid, class: 'MuchHappened', queue: 'archive', args: [1], at: now() + 7200 });
  const happened = async () => (await http(`${base}/api/jobs/${jid}`)).events.map((e) => e.what);
  for (const [what, path, method, body] of [['changed', '', 'PATCH', { args: [2] }], ['deleted', '', 'DELETE'], ['undone', '/undo', 'POST'], ['triggered', '/trigger', 'POST']]) {
    await until(`it can be ${what}`, () => http(`${base}/api/scheduled-jobs/${jid}${path}`, method, body).then(() => true));
    await until(`it is ${what}`, async () => (await happened()).includes(what));
  }
}

/** An operation that ended some time ago, on another page. @param {any} world */
async function deleteSome({ base }) {
  const all = [1, 2, 3, 4].map((n) => ({ class: 'WrongOnes', queue: 'archive', args: [n], at: now() + 90_000 }));
  await http(`${base}/api/jobs`, 'POST', all);
  const there = (/** @type {number} */ n) => until(`${n} are there`, async () => (await http(`${base}/api/scheduled-jobs?page=1&class=WrongOnes`)).filtered_count === n);
  await there(4);
  await http(`${base}/api/operations`, 'POST', { action: 'delete', set: 'scheduled-jobs', filter: { class: 'WrongOnes' }, expected_count: 4 });
  await there(0);
}

/**
 * The task that `hang` prepares. It changes nothing, so it need not wait for the tests of pages. They
 * may take so long that the broker takes back the jobs that hang.
 * @param {any} world
 */
export const hanging = (world) => task(world, { name: 'why a queue stands still: all slots of its worker hang, named within two minutes', most: { clicks: 4 }, act: async (me) => {
  const took = await world.stuck;
  await (await problem(me, /Queue exports: 3 jobs wait, all 2 slots of its workers are busy, and none was taken for \d+ min/)).click();
  assert.ok(took + asks < 120_000, `${took / 1000} s`);
  await me.find('main').reads(/busy, no progress/);
  await me.find('alert').reads(/3 jobs wait, all 2 slots of its workers are busy, and none has been taken.* The running jobs may hang/);
  await me.find('alert').find('link', 'Running jobs').click();
  const table = me.find('table', 'Running jobs');
  await until('its two jobs are shown', async () => (await table.find('row').texts()).filter((t) => /^Export .* exports .*:hanging/.test(t)).length === 2);
  return `; named after ${Math.round(took / 1000)} s`;
} });

/** @type {Parameters<typeof task>[1][]} */
const all = [
  { name: 'why a queue stands still: it has no worker', most: { clicks: 1 }, act: async (me) => {
    await attention(me).find('link', /Queue archive: \d+ jobs wait and no worker consumes the queue$/).click();
    await me.find('alert').reads(/\d+ jobs wait and no workers consume this queue\. Start one/);
  } },

  { name: 'retry all timeouts of one class of the last hour', most: { clicks: 5, keys: 35 }, act: async (me) => {
    await me.go('Dead');
    await me.find('table', 'dead jobs').find('row').nth(1).seen();
    await me.press('/');
    const box = me.find('combobox', /^Filter /);
    await box.focused();
    /** Types the beginning of a term, and takes the first suggestion. */
    const complete = async (begin, suggested) => {
      await me.type(begin);
      await until(`${suggested} is the first suggestion`, async () => (await me.find('option').texts())[0]?.startsWith(suggested));
      await me.press('Tab');
    };
    for (const [begin, suggested] of [['er', 'error:'], ['time', 'error:Timeout'], ['cl', 'class:'], ['sync', 'class:SyncInventory'], ['di', 'died:<1h']]) await complete(begin, suggested);
    await me.listed.reads(/^1–50 of 60 matching/);
    await me.find('checkbox', 'Select all on this page').check();
    await me.find('button', 'Select all 60 matching').click();
    await me.find('region', 'Selection').find('button', 'Retry now').click();
    await me.dialog.find('button', 'Retry 60 dead jobs').click();
    await done(me, /^Retry 60 dead jobs/, 60);
  } },

  { name: 'retry all jobs of one error', most: { clicks: 3 }, scene: die, act: async (me) => {
    await attention(me).find('link', /jobs died in the last 15 minutes/).click();
    await me.find('table', 'Errors').find('row', /NoRoute/).find('button', 'Retry now all 12 with NoRoute of CheckStock').click();
    await me.dialog.reads(/Filter error: NoRoute in CheckStock: /);
    await me.dialog.find('button', 'Retry 12 dead jobs').click();
    await done(me, /^Retry 12 dead jobs/, 12);
  } },

  { name: 'find a job by its ID', most: { clicks: 0, keys: 3 }, act: (me) => jobPage(me, 'dead-invoice-1') },

  { name: 'the whole story of a job', most: { clicks: 0, keys: 3 }, scene: live, act: async (me) => {
    await jobPage(me, 'much-happened');
    const timeline = me.find('region', 'Timeline');
    await timeline.reads(/Enqueued manually/);
    const said = await timeline.find('listitem').texts();
    const want = [/^Changed arguments .*by guest/, /^Deleted .*by guest/, /^Restored to scheduled jobs .*by guest/, /^Enqueued manually .*by guest/];
    assert.equal(said.length, want.length, said.join(' | '));
    for (const [i, pattern] of want.entries()) assert.match(said[i], pattern);
    assert.doesNotMatch(await timeline.text(), /Earlier history is not available/);
  } },

  { name: 'delete all dead jobs, and undo that', most: { clicks: 6 }, act: async (me) => {
    await me.go('Dead');
    const [, n] = await me.listed.reads(/^1–50 of (\d+) dead jobs/);
    await me.find('checkbox', 'Select all on this page').check();
    await me.find('button', `Select all ${n} matching`).click();
    await me.find('region', 'Selection').find('button', 'Delete').click();
    await me.dialog.reads(/You can undo this\./);
    await me.dialog.find('button', `Delete ${n} dead jobs`).click();
    const deletion = me.operation(`Delete ${n} dead jobs`);
    await deletion.pointAt();
    await done(me, `Delete ${n} dead jobs`, n);
    await deletion.find('button', 'Undo').click();
    await done(me, new RegExp(`^(Undo|Restored) ${n} dead jobs`), n);
    await me.listed.reads(new RegExp(`^1–50 of ${n} dead jobs`));
  } },

  { name: 'undo an operation later', most: { clicks: 2 }, scene: deleteSome, act: async (me) => {
    await me.go('Operations');
    const row = me.find('table', 'Operations').find('row', /^Delete 4 scheduled jobs/);
    await row.find('button', 'Undo').click();
    await row.reads(/undone/);
  } },

  { name: 'which worker is stuck, and on what', most: { clicks: 3 }, act: async (me) => {
    await attention(me).find('link', 'report-that-hangs').click();
    const running = me.find('region', 'Running');
    await running.reads(/Class DailyReport Queue reports Process worker-2:822:shop .*Stuck · \d+× usual/);
    await running.find('link', 'worker-2:822:shop').click();
    await me.find('heading', /worker-2:822:shop/, { level: 1 }).seen();
    await me.find('table', 'Running jobs').find('row').nth(1).reads(/DailyReport report-that-hangs reports Stuck · \d+× usual 3 h/);
  } },

  { name: 'a release made a class slower', most: { clicks: 5 }, act: async (me) => {
    await me.go('Metrics');
    await me.find('table', 'Classes').find('link', 'SendInvoice').click();
    await me.find('group', 'Range').find('button', '6h').click();
    await me.find('region', 'In this range').reads(/p95.*\+\d+ % vs before/);
    await me.find('figure', /^Run time\. .*Deploys: v2\.4/).seen();
  } },

  { name: 'reschedule a job', most: { clicks: 4 }, act: async (me) => {
    await me.go('Scheduled');
    await me.find('table', 'scheduled jobs').find('button', /^Change: DailyReport/).first().click();
    await me.dialog.find('button', 'In 7 d').click();
    await me.dialog.find('button', 'Change').click();
    await me.notes.reads(/: changed/);
  } },

  { name: 'reschedule many jobs', most: { clicks: 4 }, act: async (me) => {
    await me.go('Scheduled');
    await me.find('table', 'scheduled jobs').find('row').nth(1).seen();
    await me.press('/');
    await me.find('combobox', /^Filter /).focused();
    await me.paste('queue:mails');
    await me.press('Enter');
    await me.listed.reads(/^1–50 of \d+ matching/);
    await me.find('checkbox', 'Select all on this page').check();
    await me.find('region', 'Selection').find('button', 'Reschedule').click();
    await me.dialog.reads(/ · in (1 h|59 min)/);
    await me.dialog.find('button', 'Reschedule 50 scheduled jobs').click();
    await done(me, 'Reschedule 50 scheduled jobs', 50);
  } },

  { name: 'change the arguments of a dead job, and retry it', most: { clicks: 6 }, act: async (me) => {
    await me.go('Dead');
    await me.find('table', 'dead jobs').find('button', /^Change: SendInvoice/).first().click();
    await me.dialog.find('textbox', 'Arguments').click();
    await me.press('Control+a');
    await me.paste('[{"invoice": 9007199254740995}]');
    await me.dialog.find('group', 'Changes').reads(/9007199254740995/);
    await me.dialog.find('checkbox', 'Retry it now').check();
    await me.dialog.find('button', 'Change and retry').click();
    await me.notes.reads(/SendInvoice .*: enqueued/);
  } },

  { name: 'pause a queue, and resume it', most: { clicks: 6 }, act: async (me) => {
    await me.find('table', 'Queues').find('link', 'archive').click();
    await me.find('button', 'Pause', { exact: true }).click();
    await me.dialog.find('button', 'Pause').click();
    await me.find('status').reads(/Paused by guest/);
    await me.find('button', 'Resume', { exact: true }).click();
    await me.find('status').gone();
  } },

  // It cannot be taken back, so one click is a confirmation.
  { name: 'quiet a worker', most: { clicks: 2 + 1 }, act: async (me) => {
    await me.go('Processes');
    const row = me.find('table', 'Worker processes').find('row', / side /);
    await row.find('button', /^Quiet /).click();
    await me.dialog.reads(/To undo this, restart the process\. .*This is the only worker of: side/);
    await me.dialog.find('button', 'Quiet 1 process').click();
    await me.pointAway();
    await row.reads(/ quiet side /);
  } },

  { name: 'watch the runs of one class', most: { clicks: 1, keys: 2 }, act: async (me) => {
    await me.go('Live');
    const links = me.find('log', 'Runs').find('link');
    await links.first().seen();
    await me.press('/');
    await me.find('searchbox', 'Filter runs').focused();
    await me.paste('ChargeCard');
    await until('only those are shown', async () => {
      const texts = await links.texts();
      return texts.length > 1 && texts.every((t) => ['ChargeCard', 'demo.critical'].includes(t));
    });
  } },

  { name: 'who did what', most: { clicks: 2 }, act: async (me) => {
    await me.go('Operations');
    await me.find('tab', 'Audit log').click();
    const rows = me.find('table', 'Audit log').find('row');
    await rows.nth(5).seen();
    const said = await rows.texts();
    for (const pattern of [/guest worker quieted/, /guest resumed archive/, /guest paused archive/, /guest Retry: done 60 jobs/]) {
      assert.equal(said.filter((row) => pattern.test(row)).length, 1, `${pattern}: ${said.join(' | ')}`);
    }
  } },
];

export function tasks(world) {
  for (const one of all) task(world, one);
}
