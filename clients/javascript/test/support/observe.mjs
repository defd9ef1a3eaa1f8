// Helpers that wait for and look at results.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until a condition holds.
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

/** Returns a logger, its lines, and a function for the lines about a job. */
export function capture() {
  const lines = [];
  const logger = Object.fromEntries(['info', 'warn', 'error'].map((level) => [level, (text, fields) => lines.push({ level, text: text.replace('millrace: ', ''), ...fields })]));
  return { lines, logger: /** @type {any} */ (logger), of: (jid) => lines.filter((line) => line.jid === jid) };
}
