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

/** A time relative to now, in the form of the API. */
export const relativeTime = /^([+-]\d{1,5})([smhd])$/;
const units = { s: 1, m: 60, h: 3600, d: 86400 };

/**
 * Returns a time of the API, in seconds.
 * @param {string|number} text
 * @param {number} [from] what it is relative to
 */
export function timeOf(text, from = serverNow()) {
  const m = relativeTime.exec(String(text));
  return m ? from + Number(m[1]) * units[m[2]] : Number(text);
}

/**
 * Returns a filter with absolute times, computed from when its answer was read.
 * @param {Record<string, any>} filter
 * @param {number} read in milliseconds of this browser's clock
 */
export const fixed = (filter, read) => Object.fromEntries(Object.entries(filter).map(([k, v]) => [k, k === 'from' || k === 'to' ? timeOf(v, read / 1000 + skew.value) : v]));

setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 1000);
