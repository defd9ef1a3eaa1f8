// Unreadable records, and entries that are held after a gap in the journal: the decisions about
// them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { by, story } from './person.js';
import { http, serve, until, virtualHost } from './sidecar.js';

export function records(world) {
  story(world, 'a record that cannot be read is fixed and republished', async (me) => {
    await me.go('Rejected');
    await me.find('button', /^Fix scheduled_jobs/).click();
    const record = me.dialog.find('textbox', 'Record');
    await record.fill('{"type": ');
    await me.dialog.find('alert').reads(/Not valid JSON/);
    assert.ok(await me.dialog.find('button', 'Republish').disabled());
    await record.fill(JSON.stringify({ type: 'scheduled_job', jid: 'fixed', scheduled_at: Date.now() / 1000 + 9000, job: { jid: 'fixed', class: 'Fixed', args: [], queue: 'mails' } }));
    await me.dialog.find('button', 'Republish').click();
    await me.notes.reads(/Record republished/);
    await me.find('button', /^Fix scheduled_jobs/).gone();
    await me.go('Scheduled');
    await me.filter('class:Fixed');
    await me.find('table', 'scheduled jobs').find('link', 'Fixed').seen();
  });

  story(world, 'a record that cannot be read is dismissed', async (me) => {
    await world.publish('dead_jobs', 'neither is this');
    await me.go('Rejected');
    await me.find('cell', 'neither is this').seen();
    const off = me.find('button', /^Dismiss dead_jobs/);
    await off.click();
    await me.dialog.find('button', 'Cancel').click();
    await me.dialog.gone();
    await off.click();
    await me.dialog.find('button', 'Dismiss').click();
    await me.notes.reads(/Record dismissed/);
    await me.pointAway();
    await off.gone();
    await me.find('cell', 'not even JSON').seen();
  });

  test('what is held after the journal was lost is let go, or discarded', async () => {
    await virtualHost(world, 'gap');
    const sidecar = await serve(world, 'gap', []);
    const base = `http://127.0.0.1:${sidecar.port}`;
    const at = { ...world, base };
    const put = (jid, seconds) => http(`${world.management}/api/exchanges/gap/amq.default/publish`, 'POST',
      { properties: { delivery_mode: 2 }, routing_key: 'scheduled_jobs', payload_encoding: 'string',
      payload: JSON.stringify({ type: 'scheduled_job', jid, scheduled_at: Date.now() / 1000 + seconds, job: { jid, class: 'Gap', queue: 'gap', args: [] } }) });
    /** Deletes the journal while no sidecar runs. One entry is due then, and one is not. */
    const lose = async (n) => {
      await until('it leads', async () => (await http(base + '/api/overview')).scheduler.leader);
      await sidecar.stop();
      await http(`${world.management}/api/queues/gap/job_journal`, 'DELETE');
      await put(`overdue-${n}`, -60);
      await put(`later-${n}`, 90_000);
      await sidecar.begin();
      await until('it holds', async () => Object.keys((await http(base + '/api/overview')).journal.held || {}).length > 0);
    };
    const waits = async () => (await http(base + '/api/scheduled-jobs?limit=50')).map((e) => e.jid).sort();
    try {
      for (const [n, button, word, verb] of [[1, 'Release', 'release', 'Release'], [2, 'Discard', 'discard', 'Discard']]) {
        await lose(n);
        assert.ok((await waits()).includes(`overdue-${n}`), 'nothing fires before an operator decides');
        await by(at, async (me) => {
          await me.go('Scheduled');
          await me.find('button', '1 overdue').click();
          await me.listed.reads(/^1 matching/);
          await me.find('status').reads(/The journal has a gap/);
          await me.find('link', 'Review').click();
          await me.find('region', 'Held after a gap in the journal').find('button', button).click();
          assert.ok(await me.dialog.find('button', verb).disabled());
          await me.dialog.find('textbox', /^Type/).fill(word);
          await me.dialog.find('button', verb).click();
          await me.notes.reads(/Held jobs released|Due jobs discarded/);
          await me.find('region', 'Held after a gap in the journal').gone();
        }, { expected: /health\/checks/ });
        await until('it is decided', async () => !(await waits()).includes(`overdue-${n}`));
        assert.ok((await waits()).includes(`later-${n}`), 'what is not due stays');
      }
      await until('one was let go, one was not', async () => (await http(base + '/api/job-queues/gap')).ready === 1);
    } finally {
      await sidecar.end();
    }
  });
}
