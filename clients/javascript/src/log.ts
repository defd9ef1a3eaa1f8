import { inspect } from 'node:util';

import type { Job } from './job.js';
import type { End, Fields, Level } from './outbox.js';
import type { Logger } from './types.js';

const LEVELS = ['info', 'warn', 'error'] as const;

type Write = (text: string, fields?: object) => void;

/** Makes a logger from a function that returns the writer of a level. */
const made = (write: (level: Level) => Write): Logger => Object.fromEntries(LEVELS.map((level) => [level, write(level)])) as Record<Level, Write>;

/** Returns a value for a log line, in quotes unless it is one word. */
const shown = (value: unknown): string => {
  const text = Array.isArray(value) ? value.join(',') : typeof value === 'object' ? inspect(value) : String(value);
  // eslint-disable-next-line no-control-regex
  return /^[^\s"=\u0000-\u001f\u007f-\u009f]+$/.test(text) ? text : JSON.stringify(text);
};

/** Returns one line of text and fields, and the stack below it, if there is one. */
export function formatted(text: string, { stack, ...fields }: Fields = {}): string {
  const pairs = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '').map(([name, value]) => `${name}=${shown(value)}`);
  return (pairs.length > 0 ? `${text}  ${pairs.join(' ')}` : text) + (stack ? `\n${stack}` : '');
}

/** Writes to the console. */
const CONSOLE = made((level) => (text, fields) => console[level](formatted(text, fields as Fields)));

/**
 * Returns a logger that has all levels and never throws: the given one, none for false, or the
 * console.
 */
export function loggerOf(given: Logger | false = CONSOLE): Logger {
  if (given && !LEVELS.every((level) => typeof given[level] === 'function')) {
    throw new TypeError('millrace: the logger needs the functions info, warn and error, each (text, fields); false is no logger');
  }
  return made((level) => (text, fields = {}) => {
    try {
      if (given) given[level](`millrace: ${text}`, fields);
    } catch {
      // There is no place to report it.
    }
  });
}

/** A time as ISO text, if it has one. */
const time = (ms: number): string | undefined => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined);

export const attempt = (job: Pick<Job, 'class' | 'jid' | 'queue' | 'attempt'>): Fields => ({
  class: job.class, jid: job.jid, queue: job.queue, attempt: job.attempt,
});

/** Logs an attempt that did not end well. */
export function logEnd(log: Logger, job: Job, { next, failed, reason, after = 0, due = 0, error }: End, stack: string): void {
  if (next === 'handed_back') log.info('job handed back', attempt(job));
  else if (next === 'discarded' && !failed) log.info('job discarded', { ...attempt(job), reason });
  else {
    log.warn(failed ? 'job failed' : 'job died', {
      ...attempt(job), next, reason,
      ...(next === 'retry' && { retryIn: Math.round(after * 1000) / 1000, retryAt: time(due) }),
      errorClass: error?.errorClass, error: error?.message, stack,
    });
  }
}
