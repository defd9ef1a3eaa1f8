// @ts-check
// The overview, parts of which are in the frame of every page. It is requested once for all of
// them.
import { computed, effect, signal } from './h.js';
import { apiPath, ask, connection, generation, signedOut } from './api.js';
import { setServerTime } from './clock.js';
import { onTopic, source } from './live.js';
import { paused } from './paused.js';
import { onSignOut, whoami, whyNot } from './session.js';
import { frame as words } from './words.js';

/** @type {import('../../vendor/signals.js').Signal<any>} */
export const overview = signal(null);
/** How many seconds the view lags. */
export const lag = computed(() => overview.value?.views?.lag_seconds ?? 0);
/** Whether the view has not read all records yet. */
export const replaying = computed(() => overview.value?.views?.caught_up === false);
/** Why bulk actions are not possible, or ''. */
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
      if (mine === asked) overview.value = data; // drop the answer if a later request was sent
    } catch { /* a component that needs more shows the error */ }
  }
  clearTimeout(timer);
  timer = setTimeout(load, source.peek() === 'events' ? 30_000 : 5000);
}

/** The latest overview from the events, and when it is shown. @type {any} */
let latest = null;
let due = 0;

/**
 * Shows an overview from an event. It is complete except for the time, so no request is needed. It
 * is drawn once a second.
 * @param {any} data
 */
function hear(data) {
  latest = data;
  due ||= setTimeout(() => {
    due = 0;
    asked++; // a pending answer is older
    if (latest && !paused.value) overview.value = latest;
  }, 1000);
}

/** Starts the requests. */
export function watchOverview() {
  let first = true;
  effect(() => {
    generation.value;  
    if (!signedOut.value || first) load();
    first = false;
  });
  onSignOut(() => {
    asked++; // a pending answer was for the previous user
    latest = overview.value = null;
  });
  onTopic('overview', hear);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) load(); });
}

/** Requests the overview now. */
export const refreshOverview = load;
