'use strict';

const { inspect } = require('node:util');

const LEVELS = ['info', 'warn', 'error'];

/** A value of a log line: as it is, or in quotes where it would be taken for more than one. */
const shown = (value) => {
  const text = Array.isArray(value) ? value.join(',') : typeof value === 'object' ? inspect(value) : String(value);
  // eslint-disable-next-line no-control-regex
  return /^[^\s"=\u0000-\u001f\u007f-\u009f]+$/.test(text) ? text : JSON.stringify(text);
};

/** One line of text and fields, and under it the stack, if there is one. */
function formatted(text, { stack, ...fields } = /** @type {any} */ ({})) {
  const pairs = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '').map(([name, value]) => `${name}=${shown(value)}`);
  return (pairs.length > 0 ? `${text}  ${pairs.join(' ')}` : text) + (stack ? `\n${stack}` : '');
}

/** Writes to the console. */
const CONSOLE = Object.fromEntries(LEVELS.map((level) => [level, (text, fields) => console[level](formatted(text, fields))]));

/** A logger that has all levels and never throws: the given one, none for false, or the console. */
function loggerOf(given = CONSOLE) {
  if (given && !LEVELS.every((level) => typeof given[level] === 'function')) {
    throw new TypeError('millrace: the logger needs the functions info, warn and error, each (text, fields); false is no logger');
  }
  const entries = LEVELS.map((level) => [level, (text, fields = {}) => {
    try {
      if (given) given[level](`millrace: ${text}`, fields);
    } catch {
      // There is no place to report it.
    }
  }]);
  return Object.fromEntries(entries);
}

/** A time as ISO text, if it has one. */
const time = (ms) => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined);

const attempt = (job) => ({ class: job.class, jid: job.jid, attempt: job.attempt });

/** Logs how an attempt ended that did not end well. */
function logEnd(log, job, { next, failed, reason, after, due, error }, stack) {
  if (next === 'handed_back') log.info('job handed back', attempt(job));
  else if (next === 'discarded' && !failed) log.info('job discarded', { ...attempt(job), reason });
  else {
    log.warn(failed ? 'job failed' : 'job died', {
      ...attempt(job), next, reason,
      ...(next === 'retry' && { retryIn: Math.round(after * 1000) / 1000, retryAt: time(due) }),
      errorClass: error.errorClass, errorMessage: error.message, stack,
    });
  }
}

module.exports = { attempt, formatted, logEnd, loggerOf };
