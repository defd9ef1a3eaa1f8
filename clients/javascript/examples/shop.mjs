// A small web shop: a request enqueues the payment, which is retried while the bank is busy, and a day later the customer gets an e-mail.
//
// It needs a broker and Millrace (`make up`). Web server and worker are one program, because the orders are in memory in place of a database:
//
//     node shop.mjs                                                         # on port 8000
//     curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
//     curl http://127.0.0.1:8000/orders/1                                   # what became of it
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { Client, MillraceError, Worker, defineJob } from 'millrace-jobs';

const url = process.env.MILLRACE_AMQP_URL; // undefined: amqp://guest:guest@127.0.0.1:5672/
const port = Number(process.env.SHOP_PORT ?? 8000);
const A_DAY = 24 * 3600;

const client = new Client({ url, timeout: 2 }); // a request does not wait longer than 2 seconds for the broker
const worker = new Worker({ url, queues: ['payments', 'mail'], concurrency: 5 });

const charge = defineJob('Charge', { queue: 'payments', retry: 10, timeout: 30 });
const askForReview = defineJob('AskForReview', { queue: 'mail', retry: 5 });

/** Stands in for a table of a database. @type {Map<number, {email: string, paid: boolean, mailed: boolean}>} */
const orders = new Map();

/** The bank takes no payments at the moment. */
class BankBusy extends Error {
  name = 'BankBusy';
}

/** Stands in for a bank that is busy at first. A real one gets the order's number, so that it takes each payment once. */
async function askBank(number, attempt) {
  if (attempt === 1) throw new BankBusy(`order ${number}: try again later`);
}

// Has an order paid. A job may run twice, so it looks first whether the order is paid.
worker.handle(charge, async (job) => {
  const [number] = job.args;
  const order = orders.get(number);
  if (!order || order.paid) return;
  await askBank(number, job.attempt);
  await client.enqueueIn(A_DAY, askForReview, [number]);
  order.paid = true;
  console.log(`order ${number} is paid`);
}, {
  // Soon again while the bank is busy; after another error, with the usual backoff.
  retryIn: (count, error) => (error instanceof BankBusy ? Math.min(2 ** count, 600) : undefined),
});

// Sends the e-mail that asks how the customer liked it. It is noted first: rather none than two.
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
    await client.enqueue(charge, [number]); // the order is there: the worker must find it
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    console.error(`order ${number} waits for its payment: ${error.message}`); // a real shop enqueues such orders later
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
