// The whole UI in a browser, with the binary, a broker and traffic. Tests find elements as people
// do: by role and name.
import { after, before } from 'node:test';
import { launch } from './browser.js';
import { beat, seed } from './seed.js';
import { http, start } from './sidecar.js';
import { bulk } from './bulk.js';
import { buttons } from './buttons.js';
import { charts } from './charts.js';
import { deeds } from './deeds.js';
import { empty } from './empty.js';
import { filters } from './filters.js';
import { inFirefox } from './firefox.js';
import { gated } from './gated.js';
import { jobs } from './jobs.js';
import { keyboard } from './keyboard.js';
import { hostile } from './hostile.js';
import { layout } from './layout.js';
import { pages } from './pages.js';
import { payload } from './payload.js';
import { people } from './people.js';
import { story } from './person.js';
import { queues } from './queues.js';
import { rarely } from './rarely.js';
import { records } from './records.js';
import { served } from './served.js';
import { states } from './states.js';
import { stories } from './stories.js';
import { whereabouts } from './whereabouts.js';
import { sorting } from './sorting.js';
import { side, workers } from './workers.js';

/** The state that all tests share. */
const world = { browser: null, base: '', publish: null };
const ends = [];

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
}, { timeout: 600_000 });

after(async () => {
  for (const end of ends.reverse()) await end();
}, { timeout: 240_000 });

people(world);
pages(world);
layout(world);
inFirefox(world);
hostile(world);
states(world);
empty(world);
filters(world);
charts(world);
served(world);
deeds(world);
for (const [name, tell] of stories) story(world, name, tell);
keyboard(world);
buttons(world);
sorting(world);
bulk(world);
rarely(world);
records(world);
gated(world);
payload(world);
queues(world);
whereabouts(world);
workers(world);
jobs(world);
