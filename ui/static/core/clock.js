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

/** A time relative to now, as the API has it. */
export const relativeTime = /^([+-]\d{1,5})([smhd])$/;
const units = { s: 1, m: 60, h: 3600, d: 86400 };

/** A time of the API, in seconds. @param {string|number} text @param {number} [from] what it is relative to */
export function timeOf(text, from = serverNow()) {
  const m = relativeTime.exec(String(text));
  return m ? from + Number(m[1]) * units[m[2]] : Number(text);
}

/** A filter whose times stand still: relative to when its answer was read. @param {Record<string, any>} filter @param {number} read in milliseconds of this browser's clock */
export const fixed = (filter, read) => Object.fromEntries(Object.entries(filter).map(([k, v]) => [k, k === 'from' || k === 'to' ? timeOf(v, read / 1000 + skew.value) : v]));

setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 1000);
