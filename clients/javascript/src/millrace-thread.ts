/**
 * The thread in which a worker's engine runs. It is a separate file in a bundle too: see
 * thread-file.js.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Engine, type EngineSettings, type Host } from './engine/engine.js';
import { run } from './engine/run.js';
import { messageOf } from './errors.js';
import { Outbox, ends, type Batch, type ToEngine, type ToHandlers } from './outbox.js';
import type { Credentials } from './types.js';
import { VERSION } from './version.js';

const HOOK_TIME = 5_000; // ms that a hook for which the engine waits may take

/** The data that a worker passes to its thread. */
export type ThreadData = Omit<EngineSettings, 'classes'> & { classes: string[] };

const port = parentPort!;
const given = workerData as ThreadData;
const outbox = new Outbox<ToHandlers>((batch) => port.postMessage(batch));
const post = (message: ToHandlers): void => outbox.post(message);
const hooks = new Map<string, () => void>();
const asked = new Map<number, { resolve(given: Credentials): void; reject(error: Error): void }>();
let questions = 0;

/** Resolves when the other thread has called the hooks, or takes too long. */
const answered = (name: string): Promise<void> => new Promise((resolve) => {
  const timer = setTimeout(done, HOOK_TIME);
  timer.unref();
  hooks.set(name, done);
  function done(): void {
    clearTimeout(timer);
    hooks.delete(name);
    resolve();
  }
});

const host: Host = {
  run({ id, job }) {
    outbox.run(id, job!);
  },
  abort({ id }, why) {
    post({ t: 'abort', id, why });
  },
  ended({ id, job, since }, outcome, wait) {
    post({ t: 'ended', id, job: since ? undefined : job, outcome, wait });
    return wait ? answered(`ended ${id}`) : undefined;
  },
  died({ id, job, since }, error) {
    post({ t: 'died', id, job: since ? undefined : job, error });
  },
  forget({ id }) {
    post({ t: 'forget', id });
  },
  stopping() {
    post({ t: 'stopping' });
  },
  log(level, text, fields) {
    post({ t: 'log', level, text, fields });
  },
  hook(name) {
    post({ t: 'hook', name });
    return answered(name);
  },
  credentials() {
    const id = ++questions;
    post({ t: 'ask', id });
    return new Promise((resolve, reject) => {
      asked.set(id, { resolve, reject });
    });
  },
};

const engine = given.library === VERSION ? new Engine({ ...given, classes: new Set(given.classes) }, host) : undefined;

function obey(running: Engine, message: ToEngine): void {
  switch (message.t) {
    case 'verdict':
      running.verdict(message.id, message.verdict);
      break;
    case 'hooked':
      hooks.get(message.name)?.();
      break;
    case 'credentials': {
      const { id, credentials, error } = message;
      const question = asked.get(id);
      asked.delete(id);
      if (credentials) question?.resolve(credentials);
      else question?.reject(new Error(error));
      break;
    }
    case 'quiet':
      running.quiet();
      break;
    case 'stop':
      running.stop();
  }
}

port.on('message', (batch: Batch<ToEngine>) => {
  if (engine) for (const message of ends(batch)) obey(engine, message);
});

async function main(): Promise<void> {
  try {
    if (!engine) throw new Error(`the worker is of version ${given.library}, and the file of its thread of version ${VERSION}: bundle or install both again`);
    await run(engine);
    post({ t: 'end' });
  } catch (error) {
    post({ t: 'end', error: messageOf(error) });
  }
  outbox.flush();
  port.unref();
}

main();
