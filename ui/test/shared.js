// A broker, a sidecar with traffic, a worker and a browser that the tests of a file share.
import { after, before } from 'node:test';
import { launch } from './browser.js';
import { beat, seed } from './seed.js';
import { http, start } from './sidecar.js';
import { side } from './workers.js';

/**
 * Returns the shared state, which is complete when the first test begins.
 * @param {(world: any) => any} [scene] what else is to be set up
 */
export function shared(scene) {
  /** @type {(() => any)[]} */
  const ends = [];
  const world = { browser: null, base: '', publish: null, ends };
  before(async () => {
    const [sidecar, browser] = await Promise.all([start(), launch()]);
    ends.push(() => sidecar.stop(), () => browser.close());
    world.browser = browser;
    world.base = sidecar.base;
    world.management = sidecar.management;
    world.amqp = sidecar.amqp;
    await http(`${sidecar.management}/api/users/watcher`, 'PUT', { password: 'watches', tags: 'monitoring' });
    await http(`${sidecar.management}/api/permissions/%2F/watcher`, 'PUT', { configure: '', write: '', read: '.*' });
    world.publish = (await seed(sidecar)).publish;
    const hearts = beat(world.publish);
    await hearts.first;
    ends.push(() => hearts.stop());
    const worker = await side(sidecar);
    ends.push(() => worker.stop());
    await scene?.(world);
  }, { timeout: 600_000 });

  after(async () => {
    for (const end of ends.reverse()) await end();
  }, { timeout: 240_000 });
  return world;
}
