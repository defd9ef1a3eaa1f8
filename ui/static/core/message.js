// @ts-check
// Delayed messages: jobs of a built-in class, whose only argument is the message.
import { message as words } from './words.js';

const messageClass = 'millrace.Message';

/**
 * Returns the message that a job delivers, or null.
 * @param {{class?: string, args?: any}|null|undefined} job
 * @returns {any}
 */
export function messageOf(job) {
  const m = job?.class === messageClass && Array.isArray(job.args) ? job.args[0] : null;
  return typeof m?.exchange === 'string' ? m : null;
}

/**
 * Returns what to call a job: its class or, of a message, where it goes.
 * @param {{class?: string, args?: any}|null|undefined} job
 * @param {string} [cls] the class, if the job is not known
 */
export function nameOfJob(job, cls = job?.class) {
  const m = messageOf(job);
  if (!m) return cls || '';
  const key = String(m.routing_key ?? '');
  return m.exchange && key ? words.route(m.exchange, key) : m.exchange || key || words.defaultExchange;
}

/** Returns the filter of the messages for an exchange. @param {string} exchange */
export const toExchange = (exchange) => ({ class: messageClass, args: '0.exchange:' + exchange });

/**
 * Returns the body of a message: its text, or how many bytes it has if it is no text.
 * @param {any} m
 * @returns {{text?: string, size: number}}
 */
export function bodyOf(m) {
  if (typeof m.body_base64 !== 'string') {
    const text = String(m.body ?? '');
    return { text, size: new TextEncoder().encode(text).length };
  }
  const bytes = bytesOf(m.body_base64);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!/[^\P{Cc}\t\r\n]/u.test(text)) return { text, size: bytes.length };
  } catch {
    // It is no text.
  }
  return { size: bytes.length };
}

/** Returns the bytes of a base64 text; none if it is not valid. @param {string} base64 */
export function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
