'use strict';

/** The thread in which a worker's engine runs. It is a file of its own in a bundle too: see thread-file.js. */
const { parentPort, workerData } = require('node:worker_threads');
const { Engine } = require('./engine/engine.js');
const { Outbox, ends } = require('./outbox.js');
const { VERSION } = require('./version.js');

const HOOK_TIME = 5_000; // ms that a hook for which the engine waits may take

const outbox = new Outbox((batch) => parentPort.postMessage(batch));
const post = (message) => outbox.post(message);
const hooks = new Map();

/** The other thread has called hooks, or takes too long. */
const answered = (name) => new Promise((resolve) => {
  const timer = setTimeout(done, HOOK_TIME);
  timer.unref();
  hooks.set(name, done);
  function done() {
    clearTimeout(timer);
    hooks.delete(name);
    resolve(undefined);
  }
});

const host = {
  run({ id, job }) {
    outbox.run(id, job);
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
};

const engine = workerData.library === VERSION ? new Engine({ ...workerData, classes: new Set(workerData.classes) }, host) : undefined;

const obey = {
  verdict: ({ id, verdict }) => engine.verdict(id, verdict),
  hooked: ({ name }) => hooks.get(name)?.(),
  quiet: () => engine.quiet(),
  stop: () => engine.stop(),
};

parentPort.on('message', (batch) => {
  if (engine) for (const message of ends(batch)) obey[message.t](message);
});

async function run() {
  try {
    if (!engine) throw new Error(`the worker is of version ${workerData.library}, and the file of its thread of version ${VERSION}: bundle or install both again`);
    await engine.run();
    post({ t: 'end' });
  } catch (error) {
    post({ t: 'end', error: error.message });
  }
  outbox.flush();
  parentPort.unref();
}

run();
