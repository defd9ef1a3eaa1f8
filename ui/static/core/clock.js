// @ts-check
// The sidecar's clock. All relative times are relative to it.
import { computed, signal } from './h.js';

/** How many seconds the sidecar's clock is ahead of this browser's. */
export const skew = signal(0);
/** The present time by the sidecar's clock, in seconds. It changes once a second. */
export const now = signal(Date.now() / 1000);

/**
 * The minute by the sidecar's clock. Views of the last hour are drawn again each minute, even
 * without new data.
 */
export const minute = computed(() => Math.floor(now.value / 60));

/** @param {number} theirs seconds */
export function setServerTime(theirs) {
  const d = theirs - Date.now() / 1000;
  if (Math.abs(d - skew.value) > 0.25) skew.value = d;
}

/** @returns {number} */
export const serverNow = () => Date.now() / 1000 + skew.value;

setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 1000);
