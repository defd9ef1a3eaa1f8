// @ts-check
// When a periodic job is due, in words.
import { schedule as words } from './words.js';

const pad = (/** @type {string} */ n) => n.padStart(2, '0');
const number = /^\d+$/;
/** What the nicknames stand for. */
const nicknames = new Map(Object.entries({ '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0', '@daily': '0 0 * * *', '@midnight': '0 0 * * *', '@hourly': '0 * * * *' }));

/**
 * Returns a simple cron expression in words, or '' if it is not that simple.
 * @param {string} text
 */
export function cronInWords(text) {
  const [minute, hour, day, month, weekday, ...more] = (nicknames.get(text.trim().toLowerCase()) ?? text).trim().split(/\s+/);
  if (weekday === undefined || more.length || month !== '*') return '';
  const step = /^\*\/(\d+)$/.exec(minute)?.[1];
  if (hour === '*' && day === '*' && weekday === '*') {
    if (minute === '*') return words.everyMinute;
    if (step && 60 % Number(step) === 0) return words.everyMinutes(Number(step));
    return number.test(minute) ? words.hourly(pad(minute)) : '';
  }
  if (!number.test(minute) || !number.test(hour)) return '';
  const time = `${pad(hour)}:${pad(minute)}`;
  if (day === '*' && weekday === '*') return words.daily(time);
  if (day !== '*') return number.test(day) && weekday === '*' ? words.monthly(day, time) : '';
  const days = { '1-5': words.onWeekdays(time), 'mon-fri': words.onWeekdays(time) }[weekday.toLowerCase()];
  const name = /^[0-7]$/.test(weekday) ? words.weekdays[Number(weekday) % 7] : words.weekdays.find((d) => d.slice(0, 3).toLowerCase() === weekday.toLowerCase());
  return days || (name ? words.weekly(name, time) : '');
}

/**
 * Returns when a definition is due: in words if it can be, and as it is written.
 * @param {any} def
 * @returns {{text: string, written: string}}
 */
export function scheduleOf(def) {
  if (def.every) return { text: words.every(def.every), written: '' };
  if (!def.cron) return { text: '', written: '' };
  const said = cronInWords(def.cron);
  const zone = def.tz || words.utc;
  return { text: said || def.cron, written: said ? `${def.cron} ${zone}` : zone };
}

const two = /** @type {const} */ ('2-digit');
/** @type {Intl.DateTimeFormatOptions} */
const parts = { weekday: 'short', year: 'numeric', month: two, day: two, hour: two, minute: two, second: two };

/**
 * Returns the time of a tick by the clock of a time zone, or '' if this browser does not know it.
 * @param {number} at
 * @param {string} [zone]
 */
export function inZone(at, zone) {
  try {
    const form = new Intl.DateTimeFormat('en-GB', { timeZone: zone || 'UTC', ...parts });
    const p = Object.fromEntries(form.formatToParts(at * 1000).map(({ type, value }) => [type, value]));
    return `${p.weekday} ${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}:${p.second}`;
  } catch {
    return '';
  }
}
