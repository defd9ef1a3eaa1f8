// @ts-check
// Times of filters, which may be relative to now.
import { serverNow, skew } from './clock.js';

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
