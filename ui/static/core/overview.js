// @ts-check
// The overview, which the frame of every page shows parts of. It is asked for once, whoever looks.
import { computed, effect, signal } from './h.js';
import { apiPath, ask, connection, generation, signedOut } from './api.js';
import { setServerTime } from './clock.js';
import { onTopic, source } from './live.js';
import { paused } from './paused.js';
import { onSignOut, whoami, whyNot } from './session.js';
import { frame as words } from './words.js';

/** @type {import('../../vendor/signals.js').Signal<any>} */
export const overview = signal(null);
/** How far the view is behind, in seconds. */
export const lag = computed(() => overview.value?.views?.lag_seconds ?? 0);
/** The view has not read all there was yet. */
export const replaying = computed(() => overview.value?.views?.caught_up === false);
/** Why nothing can be done to many at once, or nothing. */
export const whyNotMany = computed(() => whyNot.value || (replaying.value ? words.stillReading : ''));

let timer = 0;
let asked = 0;
async function load() {
  clearTimeout(timer);
  if (whoami.value && !signedOut.value && !document.hidden && connection.value.up && !paused.value) {
    const mine = ++asked;
    try {
      const { data } = await ask(apiPath('overview'));
      setServerTime(data.now);
      if (mine === asked) overview.value = data; // an older answer says less
    } catch { /* whoever asks for more shows it */ }
  }
  clearTimeout(timer);
  timer = setTimeout(load, source.peek() === 'events' ? 30_000 : 5000);
}

/** The newest that events told, and when it is shown. @type {any} */
let told = null;
let due = 0;

/** An event has all but the time: nothing is asked for, and it is drawn once a second. @param {any} data */
function hear(data) {
  told = data;
  due ||= setTimeout(() => {
    due = 0;
    asked++; // what is on its way is older
    if (told && !paused.value) overview.value = told;
  }, 1000);
}

/** Begins to ask. */
export function watchOverview() {
  let first = true;
  effect(() => {
    generation.value;  
    if (!signedOut.value || first) load();
    first = false;
  });
  onSignOut(() => {
    asked++; // what is on its way was for whoever was there
    told = overview.value = null;
  });
  onTopic('overview', hear);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) load(); });
}

/** Asks now. */
export const refreshOverview = load;
