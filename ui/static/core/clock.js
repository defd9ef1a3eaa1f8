// @ts-check
// The sidecar's clock, which all relative times are relative to.
import { computed, signal } from './h.js';

/** Seconds by which the sidecar's clock is ahead of this browser's. */
export const skew = signal(0);
/** Now, by the sidecar's clock, in seconds; once a second. */
export const now = signal(Date.now() / 1000);

/** Counts minutes: what is drawn of the last hour moves on with it, whether or not anything has come. */
export const minute = computed(() => Math.floor(now.value / 60));

/** @param {number} theirs seconds */
export function setServerTime(theirs) {
  const d = theirs - Date.now() / 1000;
  if (Math.abs(d - skew.value) > 0.25) skew.value = d;
}

/** @returns {number} */
export const serverNow = () => Date.now() / 1000 + skew.value;

setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 1000);
