// Where a job is that waits in no set, and why it waits.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http } from './sidecar.js';
import { problem } from './tasks.js';

export function whereabouts(world) {
  const open = async (me, jid) => {
    await me.press('Control+k');
    await me.find('combobox', 'Search and commands').fill(jid);
    await me.find('option', /open the job/).click();
    await me.find('heading', new RegExp(jid), { level: 1 }).seen();
  };
  const place = (me) => me.find('region', 'Location');

  story(world, 'a job is followed: due, in a queue without workers, in one that is paused, leased, done', async (me) => {
    const parlour = `${world.base}/api/job-queues/parlour`;
    await http(`${world.base}/api/jobs`, 'POST', { jid: 'guest-of-the-parlour', class: 'Tea', queue: 'parlour', args: ['two cups'], at: Date.now() / 1000 + 20 });
    await open(me, 'guest-of-the-parlour');
    await me.find('region', 'Scheduled').reads(/Due in .*Queue parlour Class Tea/);
    await place(me).reads(/Queued or running Enqueued in parlour .*No workers consume the queue/);
    await http(parlour + '/pause', 'PUT', { reason: 'the house is empty' });
    await place(me).reads(/The queue is paused by guest .*: the house is empty/);
    await place(me).find('link', 'parlour').click();
    await me.find('status').reads(/Paused by guest .*: the house is empty/);
    await me.find('button', 'Resume', { exact: true }).click();
    await me.find('button', 'Pause', { exact: true }).seen();

    const [lease] = await http(parlour + '/lease', 'POST', { wait_ms: 10_000, lease_ms: 600_000 });
    assert.equal(lease.jid, 'guest-of-the-parlour');
    await me.find('region', 'Now').reads(/and 1 leased/);
    await me.back();
    await place(me).reads(/Leased A worker holds a lease on attempt 1\. It ends in .* returns to parlour/);
    await me.find('region', 'Timeline').reads(/Lease of attempt 1 ends in /);
    await me.find('region', 'Arguments').reads(/two cups.*Arguments of the last dispatch/);
    await me.go('Dashboard');
    await me.find('table', 'Queues').find('row', /parlour/).reads(/\+ 1 leased/);
    await me.back();
    await http(`${world.base}/api/leases/${lease.id}/ack`, 'POST');
    await place(me).reads(/Finished Attempt 1 succeeded .*Class Tea · Queue parlour/);
  });

  story(world, 'a run that a worker with a fast clock reported is not in the future', async (me) => {
    const run = (jid, ahead) => ({ type: 'job_metric', timestamp: Date.now() / 1000 + ahead, jid, job_class: 'Hasty', queue: 'bulk', duration_ms: 12,
      status: 'success', worker_identity: 'fast:1:shop', wait_ms: 1, attempt: 1 });
    await world.publish('job_metrics', [run('run-first', -60), run('run-by-a-fast-clock', 600), run('run-last', -30)]);
    await me.go('Jobs');
    await me.find('tab', 'Recent runs').click();
    await me.filter('class:Hasty');
    const runs = me.find('table', 'Recent runs').find('row');
    await runs.nth(1).reads(/ ago Hasty success /); // in the order of the reports
    await runs.nth(2).reads(/^now Hasty success /);
    await runs.nth(2).find('link', 'Hasty').click();
    await place(me).reads(/Finished Attempt 1 succeeded now\./);
    await me.find('region', 'Timeline').reads(/Attempt 1 succeeded now · fast:1:shop/);
    await place(me).find('link', 'Hasty').click();
    // In the order in which they ended.
    for (const [i, says] of [/^now .* run-by-a-fast-clock$/, / ago .* run-last$/, / ago .* run-first$/].entries()) await runs.nth(i + 1).reads(says);
  });

  story(world, 'a job that runs, though no stream has it', async (me) => {
    await (await problem(me, 'report-that-hangs')).click();
    await me.find('heading', /DailyReport report-that-hangs/, { level: 1 }).seen();
    const running = me.find('region', 'Running');
    await running.reads(/Class DailyReport Queue reports Process worker-2:822:shop Started 3 h .*ago Running for 3 h .*Stuck · \d+× usual Usually up to/);
    for (const name of ['stop its process', 'worker-2:822:shop']) {
      await running.find('link', name).click();
      await me.find('heading', /worker-2:822:shop/, { level: 1 }).seen();
      await me.back();
    }
  });
}
