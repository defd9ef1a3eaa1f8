// A worker without a broker stops when it notices that. Run by worker.test.mjs.
import { Worker } from 'millrace-jobs';

const logger = { info() {}, error() {}, warn: () => worker.stop() };
const worker = new Worker({ url: 'amqp://guest:guest@127.0.0.1:1/', logger });
await worker.run();
console.log('stopped');
