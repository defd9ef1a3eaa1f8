// A small web shop. A request enqueues the payment, which is retried while the bank is busy. A day
// later, the customer gets an e-mail.
//
// It needs a broker and Millrace (`make up`). Web server and worker are one program, because the
// orders are in memory instead of a database:
//
//     node shop.mjs                                                         # on port 8000
//     curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
//     curl http://127.0.0.1:8000/orders/1                                   # its state
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { Client, MillraceError, Worker, defineJob } from 'millrace-jobs';

const url = process.env.MILLRACE_AMQP_URL; // undefined: amqp://guest:guest@127.0.0.1:5672/
const port = Number(process.env.SHOP_PORT ?? 8000);
const A_DAY = 24 * 3600;

const client = new Client({ url, timeout: 2 }); // a request waits at most 2 seconds for the broker
const worker = new Worker({ url, queues: ['payments', 'mail'], concurrency: 5 });

const charge = defineJob('Charge', { queue: 'payments', retry: 10, timeout: 30 });
const askForReview = defineJob('AskForReview', { queue: 'mail', retry: 5 });

/**
 * Stands for a table of a database.
 *
 * @type {Map<number, {email: string, paid: boolean, mailed: boolean}>}
 */
const orders = new Map();

/** Thrown when the bank takes no payments at the moment. */
class BankBusy extends Error {
  name = 'BankBusy';
}

/**
 * Stands for a bank that is busy at first. A real bank gets the order's number, so that it takes
 * each payment once.
 */
async function askBank(number, attempt) {
  if (attempt === 1) throw new BankBusy(`order ${number}: try again later`);
}

// Pays an order. A job may run twice, so it first checks whether the order is paid.
worker.handle(charge, async (job) => {
  const [number] = job.args;
  const order = orders.get(number);
  if (!order || order.paid) return;
  await askBank(number, job.attempt);
  await client.enqueueIn(A_DAY, askForReview, [number]);
  order.paid = true;
  console.log(`order ${number} is paid`);
}, {
  // A short wait while the bank is busy. The default backoff for other errors.
  retryIn: (count, error) => (error instanceof BankBusy ? Math.min(2 ** count, 600) : undefined),
});

// Sends the e-mail that asks for a review. It marks the order first, because no e-mail is better
// than two.
worker.handle(askForReview, async (job) => {
  const [number] = job.args;
  const order = orders.get(number);
  if (!order || order.mailed) return;
  order.mailed = true;
  console.log(`e-mail to ${order.email} about order ${number}`);
});

/** Takes an order. @returns {Promise<[number, object]>} */
async function order(request) {
  const body = /** @type {any} */ (await json(request).catch(() => null));
  if (typeof body?.email !== 'string') return [400, { error: 'the body must be JSON with an "email"' }];
  const number = orders.size + 1;
  orders.set(number, { email: body.email, paid: false, mailed: false });
  try {
    // After the order is stored, so that the worker finds it.
    await client.enqueue(charge, [number]);
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    // A real shop enqueues such orders later.
    console.error(`order ${number} waits for its payment: ${error.message}`);
    return [503, { order: number, error: 'we cannot take payments at the moment' }];
  }
  return [202, { order: number }];
}

/** Shows an order. @returns {[number, object]} */
function show(path) {
  const number = path.replace('/orders/', '');
  const found = orders.get(Number(number));
  return found ? [200, { paid: found.paid, mailed: found.mailed }] : [404, { error: `there is no order ${number}` }];
}

const server = createServer(async (request, response) => {
  const [status, body] = request.method === 'POST' ? await order(request) : show(request.url);
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
});

server.listen(port, '127.0.0.1');
await worker.run({ signals: true }); // until SIGTERM
server.close();
await client.close();
