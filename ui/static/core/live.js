// @ts-check
// Events of the sidecar, where it sends them: one stream for the whole page. Without it pages ask every few seconds.
import { signal } from './h.js';

/** How updates come: 'poll' or 'events'. */
export const source = signal('poll');

/** @type {Map<string, Set<(e: any) => void>>} */
const listeners = new Map();

/** Calls what is given whenever something of a topic has changed. @param {string} topic @param {(e: any) => void} call @returns {() => void} ends it */
export function onTopic(topic, call) {
  const all = listeners.get(topic) || new Set();
  listeners.set(topic, all);
  all.add(call);
  return () => { all.delete(call); };
}

/** @param {string} topic @param {any} event */
export function tell(topic, event) {
  for (const call of [...(listeners.get(topic) || [])]) call(event);
}

/** Listens to the sidecar's events, if it has them. */
export function watchEvents() {}
