// Jobs whose queue cannot be created. They have a virtual host of their own, whose sidecar creates
// one queue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { faultsOf } from './pages.js';
import { by } from './person.js';
import { http, serve, until, virtualHost } from './sidecar.js';

/** @param {string} base */
async function plant(base) {
  await http(base + '/api/jobs', 'POST', { class: 'Settled', queue: 'home', args: [] });
  await until('the one queue is there', async () => (await http(base + '/api/job-queues/home')).ready === 1);
  await http(base + '/api/jobs', 'POST', [0, 1, 2, 3].map((n) => ({ jid: `stray-${n}`, class: 'Stray', queue: 'nowhere', args: [n] })));
  await until('four wait', async () => (await http(base + '/api/gated-jobs?page=1')).total_count === 4);
}

/** Undoes the last action on one of three jobs. @param {import('./person.js').Person} me */
async function undoLast(me) {
  await me.pointAtNotes();
  await me.listed.reads(/^1–2 of 2/);
  await me.notes.find('button', 'Undo').click();
  await me.pointAway();
  await me.listed.reads(/^1–3 of 3/);
  await me.tidy();
}

/** @param {string} base */
const acts = (base) => async (/** @type {import('./person.js').Person} */ me) => {
  await me.go('Blocked');
  await me.find('heading', /^Blocked jobs/, { level: 1 }).seen();
  await me.listed.reads(/^1–4 of 4 blocked jobs, oldest first/);
  await me.filter('due:<1h');
  await me.find('alert').reads(/unknown filter “due”: use queue, class/);
  await me.find('button', 'Remove due:<1h').click();

  await me.find('button', 'Change: Stray stray-0').click();
  assert.equal(await me.dialog.find('button', 'In 1 h').count(), 0, 'such a job has no time');
  await me.dialog.find('textbox', 'Queue').fill('home');
  await me.dialog.find('button', 'Change').click();
  await me.notes.reads(/Stray stray-0: changed/);
  await until('it is in its queue', async () => (await http(base + '/api/job-queues/home')).ready === 2);
  await me.tidy();
  await me.listed.reads(/^1–3 of 3/);

  await me.find('button', 'Kill: Stray stray-1').click();
  await undoLast(me);

  await me.find('button', 'Delete: Stray stray-2').click();
  await me.dialog.reads(/You can undo this\./);
  await me.dialog.find('button', 'Delete 1 job').click();
  await undoLast(me);

  await me.find('table', 'blocked jobs').find('link', 'Stray', { exact: true }).first().click();
  await me.find('region', 'Blocked').reads(/Since .*Queue nowhere Class Stray/);
  await me.find('region', 'Timeline').find('listitem').last().reads(/^Blocked/);
  await me.back();

  await me.listed.reads(/^1–3 of 3/);
  await me.find('checkbox', 'Select all on this page').check();
  await me.find('region', 'Selection').find('button', 'Delete').click();
  await me.dialog.find('button', 'Delete 3 blocked jobs').click();
  const deletion = me.operation('Delete 3 blocked jobs');
  await deletion.pointAt();
  await deletion.reads(/3 of 3 done/);
  await me.find('region', 'blocked jobs').reads(/No blocked jobs/);
  await deletion.find('button', 'Undo').click();
  const undo = me.operation(/^(Undo|Restored) 3 blocked jobs/);
  await undo.pointAt();
  await undo.reads(/3 of 3 done/);
  await me.tidy();
  await me.listed.reads(/^1–3 of 3/);
  await me.find('link', 'Last operation').seen();

  await me.go('Health');
  await me.find('region', 'Queues that accept no jobs').reads(/nowhere .*max-queues is 1/);
};

/** @param {any} own */
async function looks(own) {
  const { page, context, faults } = await open(own.browser);
  await signIn(page, own.base);
  faults.length = 0; // the errors from before the sign-in
  await page.goto(own.base + '/gated-jobs');
  await page.getByRole('table', { name: 'blocked jobs' }).getByRole('row').nth(3).waitFor();
  assert.deepEqual([...await faultsOf(page, '/gated-jobs', {}), ...await resized(page, '/gated-jobs'), ...faults], []);
  await context.close();
}

export function gated(world) {
  test('jobs whose queue cannot be created', async (t) => {
    await virtualHost(world, 'gated');
    const sidecar = await serve(world, 'gated', ['--max-queues', '1']);
    try {
      const own = { browser: world.browser, base: `http://127.0.0.1:${sidecar.port}` };
      await plant(own.base);
      await t.test('are listed, changed, killed and deleted, and that is undone', () => by(own, acts(own.base), { name: 'gated', expected: /health\/checks/ }));
      await t.test('have a page that keeps to its window', () => looks(own));
    } finally {
      await sidecar.end();
    }
  });
}
