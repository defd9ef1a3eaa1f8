// @ts-check
// Events of the sidecar, over one WebSocket for each page. Browsers allow only six server-sent
// streams to one host, and users open more tabs than that. Without a WebSocket, pages poll every
// few seconds.
import { effect, signal } from './h.js';
import { apiPath, connection, retry, signedOut } from './api.js';
import { whoami } from './session.js';
import { paused } from './paused.js';

/** How updates come: 'poll' or 'events'. */
export const source = signal('poll');
/** Whether events are missing, so that pages poll every few seconds. */
export const polling = signal(false);

const always = ['overview', 'queues', 'processes', 'scheduled', 'retries', 'dead', 'operations'];
/** @type {Map<string, Set<(e: any) => void>>} */
const listeners = new Map();
const wanted = signal('');

/**
 * Calls a function whenever something of a topic has changed.
 * @param {string} topic
 * @param {(e: any) => void} call
 * @returns {() => void} stops this
 */
export function onTopic(topic, call) {
  const all = listeners.get(topic) || new Set();
  listeners.set(topic, all);
  all.add(call);
  wanted.value = topics();
  return () => {
    all.delete(call);
    wanted.value = topics();
  };
}

/** There are many single runs, so they are requested only while a page shows them. */
const topics = () => [...always, ...(listeners.get('jobs')?.size ? ['jobs'] : [])].join(',');

/** @param {string} topic @param {any} event */
export function notify(topic, event) {
  for (const call of [...(listeners.get(topic) || [])]) call(event);
}

/** @type {WebSocket|null} */
let socket = null;
let last = '';
let tries = 0;
let timer = 0;

function close() {
  clearTimeout(timer);
  const s = socket;
  socket = null;
  s?.close();
  source.value = 'poll';
}

function connect() {
  close();
  if (!whoami.value || signedOut.value || document.hidden || paused.value || !connection.value.up) return;
  const at = new URL(apiPath('events', [], { topics: wanted.value || topics(), last_event_id: last }), location.origin);
  at.protocol = at.protocol.replace('http', 'ws');
  const s = new WebSocket(at);
  socket = s;
  s.onmessage = (m) => {
    if (s === socket) heard(JSON.parse(m.data));
  };
  s.onclose = () => {
    if (s !== socket) return;
    socket = null;
    const was = source.value;
    source.value = 'poll';
    polling.value = true;
    if (was === 'events') retry(true);
    timer = setTimeout(connect, 1000 * 2 ** Math.min(tries++, 6));
  };
}

/** @param {{id?: string, event?: string, data: any}} m */
function heard(m) {
  tries = 0;
  source.value = 'events';
  polling.value = false;
  if (m.id) last = m.id;
  const data = typeof m.data === 'string' ? JSON.parse(m.data) : m.data;
  if (m.event !== 'update' || !data) return;
  for (const topic of Object.keys(data)) if (topic !== 'now') notify(topic, data[topic]);
}

/** Receives the sidecar's events while a user is signed in and the page is visible. */
export function watchEvents() {
  effect(() => {
    wanted.value;
    whoami.value;
    signedOut.value;
    paused.value;
    connection.value.up;
    tries = 0;
    last = '';
    // Signing in changes several of these signals, and the page then changes them too. One socket
    // is opened for all changes.
    clearTimeout(timer);
    timer = setTimeout(connect, 50);
  });
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : connect()));
}
