/** The thread in which a worker's engine runs. Messages to the program's thread are sent in batches. */
import { parentPort, workerData } from 'node:worker_threads';
import { Engine } from './engine.js';

const HOOK_TIME = 5_000; // ms that a hook for which the engine waits may take

let batch = [];
function post(message) {
  if (batch.push(message) === 1) queueMicrotask(flush);
}
function flush() {
  parentPort.postMessage(batch);
  batch = [];
}

const hooks = new Map();

const host = {
  run({ id, job }) {
    post({ t: 'run', id, job });
  },
  abort({ id }, why) {
    post({ t: 'abort', id, why });
  },
  died({ id, job }, error) {
    post({ t: 'died', id, job, error });
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
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, HOOK_TIME);
      timer.unref();
      hooks.set(name, resolve);
    });
  },
};

const engine = new Engine({ ...workerData, classes: new Set(workerData.classes) }, host);

const obey = {
  verdict: ({ id, verdict }) => engine.verdict(id, verdict),
  hooked: ({ name }) => hooks.get(name)?.(),
  quiet: () => engine.quiet(),
  stop: () => engine.stop(),
};

parentPort.on('message', (messages) => {
  for (const message of messages) obey[message.t](message);
});

try {
  await engine.run();
  post({ t: 'end' });
} catch (error) {
  post({ t: 'end', error: error.message });
}
flush();
parentPort.unref();
