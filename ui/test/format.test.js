// The formats of numbers, times and sizes, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brief, bytes, dayOrClock, millis, percent, rate, relative, roundBounds, seconds } from '../static/core/format.js';

/** @param {(n: any) => string} as @param {[any, string][]} cases */
const all = (as, cases) => assert.deepEqual(cases.map(([n]) => as(n)), cases.map(([, text]) => text));

test('rates: what is rare is counted by the minute', () => {
  all(rate, [[undefined, '–'], [null, '–'], [0, '0/s'], [0.0001, '<0.1/min'], [0.05, '3/min'], [0.1, '0.1/s'], [9.96, '10/s'], [1234.5, '1,230/s']]);
});

test('spans of time have at most two units', () => {
  all(seconds, [[undefined, '–'], [0, '0 s'], [0.0003, '0 s'], [0.0005, '1 ms'], [0.25, '250 ms'], [9.96, '10 s'], [59.9, '59 s'], [61, '1 min 1 s'],
    [600, '10 min'], [7260, '2 h 1 min'], [86_400 * 12 + 7200, '12 d']]);
  all(millis, [[null, '–'], [0.5, '0.5 ms'], [999, '999 ms'], [1500, '1.5 s']]);
});

test('shares, counts and sizes are short', () => {
  all(percent, [[null, '–'], [Number.NaN, '–'], [0, '0 %'], [0.0004, '<0.1 %'], [0.5714, '57.1 %'], [1, '100 %']]);
  all(brief, [[null, '–'], [99_999, '99,999'], [1_250_000, '1.3M']]);
  all(bytes, [[null, '–'], [999, '999 B'], [1024, '1 KB'], [5_500_000, '5.25 MB']]);
});

test('the axis of a heat map has round times', () => {
  const bounds = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000];
  assert.deepEqual(roundBounds(bounds).map((n) => bounds[n - 1]), [10, 100, 1000, 10_000, 60_000, 3_600_000]);
});

test('a time axis has the date at midnight alone', () => {
  const midnight = new Date(2026, 10, 26).getTime() / 1000;
  const every = (/** @type {number} */ s) => [0, s].map((ahead) => dayOrClock(midnight + ahead, [midnight, midnight + s]));
  assert.deepEqual(every(3600), ['00:00\n11-26', '01:00']);
  assert.deepEqual(every(30), ['00:00:00\n11-26', '00:00:30']);
  assert.deepEqual(every(86_400), ['11-26', '11-27']);
});

test('times are relative to now', () => {
  all((at) => relative(at, 1000), [[1000.4, 'now'], [970, '30 s ago'], [1090, 'in 1 min 30 s']]);
});
