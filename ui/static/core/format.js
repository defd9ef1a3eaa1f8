// @ts-check
// Formats numbers, times and sizes for people.
const whole = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const two = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });
const three = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

/** @param {number|null|undefined} n */
export const count = (n) => (n === null || n === undefined ? '–' : whole.format(n));
/** @param {number|null|undefined} n */
export const brief = (n) => (n === null || n === undefined ? '–' : Math.abs(n) < 100_000 ? whole.format(n) : compact.format(n));
/** A number of things. @param {number} n @param {string} one @param {string} [many] */
export const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');
/** A rate per second, or per minute if it is low. @param {number|null|undefined} n */
export const rate = (n) => (n === null || n === undefined ? '–' : n === 0 ? '0/s' : n >= 0.1 ? (n < 10 ? two : three).format(n) + '/s' : n < 0.1 / 60 ? '<0.1/min' : two.format(n * 60) + '/min');
/** @param {number|null|undefined} part of 1 */
export const percent = (part) => (part === null || part === undefined || Number.isNaN(part) ? '–' : part > 0 && part < 0.001 ? '<0.1 %' : three.format(Math.round(part * 1000) / 10) + ' %');
/** @param {number|null|undefined} ms */
export function millis(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return three.format(ms) + ' ms';
  if (ms < 1000) return Math.round(ms) + ' ms';
  return seconds(ms / 1000);
}
/** A duration. @param {number|null|undefined} s */
export function seconds(s) {
  if (s === null || s === undefined) return '–';
  s = Math.max(0, s);
  if (s < 1) return s < 0.0005 ? '0 s' : Math.round(s * 1000) + ' ms';
  if (s < 10) return three.format(Math.round(s * 10) / 10) + ' s';
  if (s < 60) return Math.floor(s) + ' s';
  if (s < 3600) return parts(s, 60, ' min', 1, ' s');
  if (s < 86400) return parts(s, 3600, ' h', 60, ' min');
  return parts(s, 86400, ' d', 3600, ' h');
}
/** @param {number} s @param {number} a @param {string} an @param {number} b @param {string} bn */
function parts(s, a, an, b, bn) {
  const left = Math.floor((s % a) / b);
  return Math.floor(s / a) + an + (left && s / a < 10 ? ' ' + left + bn : '');
}
/** The beginning of a text, if it is long. @param {string|undefined} text */
export const short = (text) => (text?.length > 300 ? text.slice(0, 300) + '…' : text);
/** A time relative to now. A future one is "in …". @param {number} at @param {number} now */
export function relative(at, now) {
  const d = at - now;
  if (Math.abs(d) < 1) return 'now';
  const text = Math.abs(d) < 60 ? Math.round(Math.abs(d)) + ' s' : seconds(Math.abs(d));
  return d > 0 ? 'in ' + text : text + ' ago';
}
const pad = (/** @type {number} */ n) => String(n).padStart(2, '0');
/** @param {number} at seconds @param {boolean} [utc] */
export function absolute(at, utc) {
  const d = new Date(at * 1000);
  if (Number.isNaN(d.getTime())) return '–';
  return utc ? d.toISOString().slice(0, 19).replace('T', ' ') + ' UTC'
    : `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}
/** A time with its offset from UTC. @param {number} at */
export function exact(at) {
  const off = -new Date(at * 1000).getTimezoneOffset();
  return absolute(at) + ' ' + (off < 0 ? '−' : '+') + pad(Math.floor(Math.abs(off) / 60)) + ':' + pad(Math.abs(off) % 60);
}
/** The time of day. @param {number} at seconds @param {boolean} [withSeconds] */
export const clock = (at, withSeconds) => absolute(at).slice(11, withSeconds ? 19 : 16);
/** A tick of a time axis: the date or the time of day. @param {number} t @param {number[]} all */
export function dayOrClock(t, all) {
  const step = all.length > 1 ? all[1] - all[0] : 60;
  if (step >= 86_400) return absolute(t).slice(5, 10);
  const time = clock(t, step < 60);
  // At the begin of a day, the date is below the time.
  return /^00:00(:00)?$/.test(time) ? time + '\n' + absolute(t).slice(5, 10) : time;
}
const roundTimes = [10, 100, 1000, 10_000, 60_000, 3_600_000];
/** The ticks of a heat map: which of its bounds are round times. The first is 1. @param {number[]} bounds milliseconds */
export const roundBounds = (bounds) => bounds.flatMap((ms, i) => (roundTimes.includes(ms) ? [i + 1] : []));
/** @param {number|null|undefined} n */
export function bytes(n) {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1024;
  return (i ? three.format(n) : n) + ' ' + units[i];
}
/** A time for an <input type=datetime-local>. @param {number} at */
export const local = (at) => absolute(at).slice(0, 16).replace(' ', 'T');

/**
 * A text with elements in it, such as links.
 * @param {TemplateStringsArray} strings
 * @param {...any} parts
 * @returns {any[]}
 */
export const rich = (strings, ...parts) => strings.flatMap((s, i) => (i < parts.length ? [s, parts[i]] : [s]));
