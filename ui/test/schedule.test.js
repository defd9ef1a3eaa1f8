// Schedules of periodic jobs in words, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cronInWords, inZone, scheduleOf } from '../static/core/schedule.js';

test('simple expressions are said in words, and no others', () => {
  const said = { '0 3 * * *': 'every day at 03:00', '@daily': 'every day at 00:00', ' 5  4 * * 1-5 ': 'Monday to Friday at 04:05',
    '0 8 * * Mon': 'every Monday at 08:00', '0 8 * * 7': 'every Sunday at 08:00',
    '30 4 1 * *': 'day 1 of each month at 04:30', '*/15 * * * *': 'every 15 minutes', '*/1 * * * *': 'every minute', '* * * * *': 'every minute',
    '7 * * * *': 'every hour at :07', '@HOURLY': 'every hour at :00' };
  for (const [cron, text] of Object.entries(said)) assert.equal(cronInWords(cron), text, cron);
  const others = ['*/7 * * * *', '0 3 1 1 *', '0 3 13 * fri', '0,30 3 * * *', '0 3 * * 1,3', '* 3 * * *', '0 */2 * * *', '0 3 * *', '0 3 * * * *', '@yearly', '', 'constructor'];
  for (const cron of others) assert.equal(cronInWords(cron), '', cron);
});

test('a schedule has its zone', () => {
  assert.deepEqual(scheduleOf({ cron: '0 3 * * *', tz: 'Europe/Stockholm' }), { text: 'every day at 03:00', written: '0 3 * * * Europe/Stockholm' });
  assert.deepEqual(scheduleOf({ cron: '0 3 13 * fri' }), { text: '0 3 13 * fri', written: 'UTC' });
  assert.deepEqual(scheduleOf({ every: 90 }), { text: 'every 1 min 30 s', written: '' });
  assert.deepEqual(scheduleOf({}), { text: '', written: '' });
});

test('a tick is shown by the clock of its zone', () => {
  assert.equal(inZone(1_795_917_600, 'Europe/Stockholm'), 'Sun 2026-11-29 03:00:00');
  assert.equal(inZone(1_795_917_600), 'Sun 2026-11-29 02:00:00');
  assert.equal(inZone(1_795_917_600, 'No/Zone'), '');
});
