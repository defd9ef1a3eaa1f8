// What people do with the UI, in a browser, with the binary, a broker and traffic. Tests find
// elements as people do: by role and name.
import { shared } from './shared.js';
import { bulk } from './bulk.js';
import { buttons } from './buttons.js';
import { charts } from './charts.js';
import { actions } from './actions.js';
import { enqueuing } from './enqueuing.js';
import { filters } from './filters.js';
import { gated } from './gated.js';
import { jobs } from './jobs.js';
import { keyboard } from './keyboard.js';
import { limits } from './limits.js';
import { messages } from './messages.js';
import { payload } from './payload.js';
import { periodic } from './periodic.js';
import { story } from './person.js';
import { queues } from './queues.js';
import { rarely } from './rarely.js';
import { records } from './records.js';
import { served } from './served.js';
import { sorting } from './sorting.js';
import { stories } from './stories.js';
import { whereabouts } from './whereabouts.js';
import { workers } from './workers.js';

const world = shared();

filters(world);
charts(world);
served(world);
actions(world);
for (const [name, act] of stories) story(world, name, act);
keyboard(world);
buttons(world);
sorting(world);
bulk(world);
rarely(world);
records(world);
gated(world);
messages(world);
payload(world);
queues(world);
whereabouts(world);
workers(world);
jobs(world);
enqueuing(world);
periodic(world);
limits(world);
