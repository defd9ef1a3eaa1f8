// The whole UI in a browser, against the binary, a broker and traffic. Things are found as people find them: by role and name.
import { after, before } from 'node:test';
import { launch } from './browser.js';
import { beat, seed } from './seed.js';
import { http, start } from './sidecar.js';
import { jobs } from './jobs.js';
import { pages } from './pages.js';
import { people } from './people.js';

/** What all tests share. */
const world = { browser: null, base: '', publish: null };
const ends = [];

before(async () => {
  const [sidecar, browser] = await Promise.all([start(), launch()]);
  ends.push(() => sidecar.stop(), () => browser.close());
  world.browser = browser;
  world.base = sidecar.base;
  world.management = sidecar.management;
  await http(`${sidecar.management}/api/users/watcher`, 'PUT', { password: 'watches', tags: 'monitoring' });
  await http(`${sidecar.management}/api/permissions/%2F/watcher`, 'PUT', { configure: '', write: '', read: '.*' });
  world.publish = (await seed(sidecar)).publish;
  const hearts = beat(world.publish);
  await hearts.first;
  ends.push(() => hearts.stop());
}, { timeout: 240_000 });

after(async () => {
  for (const end of ends.reverse()) await end();
}, { timeout: 60_000 });

people(world);
pages(world);
jobs(world);
