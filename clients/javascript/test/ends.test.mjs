// The ends of redelivered jobs, which a worker writes to jobs.begins.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Engine } from '../dist/engine/engine.js';
import { Task } from '../dist/engine/task.js';
import { settings } from '../dist/settings.js';

const never = new Promise(() => {});

/** Returns an engine without a broker, and the jids whose ends it has written, by connection. */
function anEngine() {
  /** @type {any} */
  const host = { run() {}, ended() {}, abort() {}, forget() {}, stopping() {}, log() {}, async hook() {} };
  /** @type {any} */
  const config = { ...settings({}), credentials: false, library: '1', classes: new Set(['A']), failureHooks: false };
  const engine = new Engine(config, host);
  const written = [];
  let connections = 0;
  /** Connects, and returns a function that loses the connection. */
  const connect = () => {
    const connection = ++connections;
    let lost = false;
    engine.writeEndsWith(async ({ jid }) => {
      if (lost) throw new Error('lost');
      written.push([connection, jid]);
    });
    return () => {
      lost = true;
    };
  };
  return { engine, written, connect };
}

/** Begins a redelivered job, if the ledger lets it. */
async function begun(engine, jid, begin = async () => 0) {
  /** @type {any} */
  const channel = { gone: false, lost: never, ack() {}, nack() {}, reject() {} };
  /** @type {any} */
  const session = { engine, ledger: { begin }, connection: { gone: false }, lost: never };
  /** @type {any} */
  const message = { content: Buffer.from(`{"class":"A","jid":"${jid}"}`), fields: { redelivered: true }, properties: { headers: {} } };
  const task = new Task(engine.lanes[0], session, channel, { queue: 'q', message, priority: 0, at: 0 });
  engine.add(task);
  task.begin();
  await turn(); // the ledger has answered
  return task;
}

const times = { begin: 1, end: 2 };
/** @type {any} */
const handBack = { kind: 'hand_back', errorClass: 'HandBack', message: '', ...times };

test('a job that is handed back has not ended', async () => {
  const { engine, written, connect } = anEngine();
  connect();
  (await begun(engine, 'done')).verdict({ kind: 'success', ...times });
  await begun(engine, 'must not begin', async () => undefined);
  const hung = await begun(engine, 'hung');
  const asked = await begun(engine, 'asked');
  engine.stop();
  asked.verdict(handBack);
  hung.handBack();
  hung.verdict({ kind: 'success', ...times }); // it ends after all
  engine.metrics.flush(); // ends its timer too
  assert.deepEqual(written, [[1, 'done']]);
});

test('the end of a job that outlives its connection is written on the next one', async () => {
  const { engine, written, connect } = anEngine();
  const lose = connect();
  const [first, second] = [await begun(engine, 'between'), await begun(engine, 'later')];
  lose();
  first.verdict({ kind: 'success', ...times });
  await turn();
  assert.deepEqual(written, []);
  connect();
  second.verdict({ kind: 'success', ...times });
  engine.metrics.flush();
  assert.deepEqual(written, [[2, 'between'], [2, 'later']]);
});
