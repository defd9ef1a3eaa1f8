// What tests wait for, and what they look at.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until something holds.
 *
 * @param {string} what
 * @param {() => boolean | Promise<boolean>} holds
 */
export async function eventually(what, holds) {
  for (const until = Date.now() + 60_000; ; await sleep(20)) {
    if (await holds()) return;
    assert.ok(Date.now() < until, `not in time: ${what}`);
  }
}

/** A logger, what it has logged, and what of it is about a job. */
export function capture() {
  const lines = [];
  const logger = Object.fromEntries(['info', 'warn', 'error'].map((level) => [level, (text, fields) => lines.push({ level, text: text.replace('millrace: ', ''), ...fields })]));
  return { lines, logger: /** @type {any} */ (logger), of: (jid) => lines.filter((line) => line.jid === jid) };
}
