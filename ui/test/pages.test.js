// How the UI looks, in browsers, with the binary, a broker and traffic: every page at many widths,
// and the sign-in. Then the tasks of an operator, which change what the pages show.
import { shared } from './shared.js';
import { empty } from './empty.js';
import { inFirefox } from './firefox.js';
import { hostile } from './hostile.js';
import { layout } from './layout.js';
import { pages } from './pages.js';
import { people } from './people.js';
import { states } from './states.js';
import { hang, hanging, tasks } from './tasks.js';

const world = shared(hang);

people(world);
hanging(world);
pages(world);
layout(world);
inFirefox(world);
hostile(world);
states(world);
empty(world);
tasks(world);
