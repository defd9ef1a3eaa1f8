/** The thread in which a worker's engine runs. */
import { parentPort, workerData } from 'node:worker_threads';
import { Engine } from './engine.js';
import { Outbox, ends } from '../outbox.js';

const HOOK_TIME = 5_000; // ms that a hook for which the engine waits may take

const outbox = new Outbox((batch) => parentPort.postMessage(batch));
const post = (message) => outbox.post(message);
const hooks = new Map();

const host = {
  run({ id, job }) {
    outbox.run(id, job);
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

parentPort.on('message', (batch) => {
  for (const message of ends(batch)) obey[message.t](message);
});

try {
  await engine.run();
  post({ t: 'end' });
} catch (error) {
  post({ t: 'end', error: error.message });
}
outbox.flush();
parentPort.unref();
