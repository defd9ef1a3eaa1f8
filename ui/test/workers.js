// Real worker processes become quiet and stop when the UI asks them to.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until, work } from './sidecar.js';

const plan = ['queues: [side]', 'classes: {Side: {command: ["true"]}}'];

/** A worker for the stories. */
export const side = (world) => work(world, '', 'side', plan);

/** Makes one process be gone before it gets the request. The others get it. @param {any} page */
const gone = (page) => page.route(/\/api\/processes\/[^/]+\/quiet$/, (/** @type {any} */ route) => (route.request().url().includes('worker-1')
  ? route.fulfill({ status: 404, json: { error: 'not_found', reason: 'no such process is known' } }) : route.fulfill({ status: 202, json: { id: '1' } })));

export function workers(world) {
  story(world, 'a process that is gone does not stop requests to the others, and stays selected', async (me) => {
    await me.go('Processes');
    await me.find('searchbox', 'Filter processes').fill('shop');
    for (const n of [1, 2, 3]) await me.find('checkbox', new RegExp(`^Select process worker-${n}:`)).check();
    const bar = me.find('region', 'Selection');
    await bar.reads(/3 processes selected/);
    await bar.find('button', 'Quiet').click();
    await me.dialog.find('button', 'Quiet 3 processes').click();
    await me.notes.reads(/Quiet requested for 2 processes/);
    await me.notes.reads(/No longer connected: worker-1:4711:shop/);
    await bar.reads(/1 process selected/);
    assert.ok(await me.find('checkbox', /^Select process worker-1:/).checked());
  }, { prepare: gone, expected: /quiet/ });

  story(world, 'workers are quieted and stopped, one and several', async (me) => {
    const three = await Promise.all([1, 2, 3].map(() => work(world, '', 'spare', plan)));
    try {
      await until('they are heard', async () => (await http(`${world.base}/api/processes`)).filter((p) => p.tag === 'spare').length === 3);
      await me.go('Processes');
      await me.find('searchbox', 'Filter processes').fill('spare');
      const table = me.find('table', 'Worker processes');
      const rows = (state) => table.find('row', new RegExp(`${state} spare`));
      const many = (state, n) => until(`${n} are ${state}`, async () => await rows(state).count() === n);
      await many('live', 3);
      assert.equal(await table.find('row').count(), 4, 'the others are filtered out');

      const stop = rows('live').first().find('button', /^Stop /);
      await stop.click();
      await me.dialog.reads(/It finishes running jobs and then exits\. Millrace cannot restart it/);
      await me.dialog.find('button', 'Cancel').click();
      await me.dialog.gone();
      await stop.click();
      await me.dialog.find('button', 'Stop 1 process').click();
      await me.notes.reads(/Stop requested for 1 process/);
      await Promise.race(three.map((w) => w.ended));
      await me.pointAway();
      await many('live', 2);

      const bar = me.find('region', 'Selection');
      for (const [before, action] of [['live', 'Quiet'], ['quiet', 'Stop']]) {
        for (const i of [0, 1]) await rows(before).nth(i).find('checkbox').check();
        await bar.reads(/2 processes selected/);
        await bar.find('button', action).click();
        await me.dialog.find('button', `${action} 2 processes`).click();
        await me.notes.reads(/requested for 2 processes/);
        await bar.gone(); // the page unselects the processes that got the request
        await me.pointAway();
        if (action === 'Quiet') await many('quiet', 2);
      }
      for (const w of three) assert.equal(await w.ended, 0);
    } finally {
      await Promise.all(three.map((w) => w.stop()));
    }
  });
}
