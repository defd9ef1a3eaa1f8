// Code that a TypeScript program may write, and code that the compiler must refuse.
// package.test.mjs checks it with strict settings.
import {
  Client, defineJob, Unconfirmed, Worker, type ClientMiddleware, type Decision, type GovernedQueue, type Job, type Limit, type Logger, type NewJob, type Unique,
} from 'millrace-jobs';
import { Attempt, Fake, Inline } from 'millrace-jobs/testing';

interface OrderMail {
  order: number;
  to: string;
  due: Date;
  total: bigint;
  note?: string;
  lines: { name: string; message: string }[];
}
declare const mail: OrderMail;
declare const unknownValue: unknown;

const orderMail = defineJob<[mail: OrderMail]>('OrderMail', { queue: 'mail', retry: 3 });
const imports = defineJob<[file: string]>('Import', { limitKey: 'ann', limited: true });
const importQueue: GovernedQueue = { name: 'imports', key: 'args.0', maxWaiting: 1000, weights: { ann: 3 }, ahead: 20 };
const importLimit: Limit = { name: 'imports', per: ['key'], rate: { jobs: 100, seconds: 60 }, overrides: { ann: { concurrency: 3 } } };
const latest: Unique = { by: ['class', 'args.0'], on: 'replace', wait: 5 };
const cleanUp = defineJob<[]>('CleanUp');
const optional = defineJob<[days?: number]>('Optional');
const tls = { ca: 'pem', cert: Buffer.from('pem'), key: 'pem', passphrase: 'x' };

export async function enqueue(client: Client | Inline): Promise<string[]> {
  const jid: string = await client.enqueue('OrderMail', [mail, 1, null, { a: [true] }]);
  await client.enqueue(orderMail, [mail], { priority: 3 });
  await client.enqueueIn(60, orderMail, [mail]);
  await client.enqueue(imports, ['a.csv'], { limitKey: 'bob' });
  await client.define('app', [{ name: 'nightly', class: imports, args: ['a.csv'], cron: '@daily', options: { limited: true } }], { limits: [importLimit] });
  await client.define('app', undefined, { limits: [], queues: [importQueue] });
  // @ts-expect-error a key is a path
  await client.define('app', undefined, { queues: [{ name: 'x', key: ['args', 0] }] });
  // @ts-expect-error nothing has a limit of its own for each host
  await client.define('app', undefined, { limits: [{ name: 'x', concurrency: 1, per: ['host'] }] });
  const stays: Decision = await client.enqueueUnique('Charge', [42], { unique: { key: 'order-42', for: 86400 }, at: new Date() });
  await client.enqueueUnique(imports, ['a.csv'], { unique: true, deadline: stays.duplicate ? 1 : 2 });
  await client.enqueue(imports, ['a.csv'], { unique: latest });
  // @ts-expect-error a job is kept or replaced
  await client.enqueue('Any', [], { unique: { on: 'drop' } });
  // @ts-expect-error a message cannot be unique
  await client.publishIn(60, { exchange: 'orders' }, { unique: true });
  // @ts-expect-error a key is a text
  await client.enqueue('Any', [], { limitKey: 7 });
  await client.enqueueAt(new Date(), cleanUp);
  await client.enqueue(optional);
  await client.enqueue(optional, [7]);
  await client.enqueue('Any', ['x'] as string[], { fields: { tenant: 'acme' }, backtrace: false });
  await client.publishAt(new Date(), { exchange: '' });
  await client.publishIn(60, { exchange: 'orders', routingKey: 'a', body: Buffer.from('x'), properties: { deliveryMode: 1, headers: { a: [1n, null] } } }, { tags: ['x'], deadline: 3 });
  // @ts-expect-error a message waits in a queue of its own
  await client.publishIn(60, { exchange: 'orders' }, { queue: 'low' });
  // @ts-expect-error there is no such property
  await client.publishIn(60, { exchange: 'orders', properties: { userId: 'guest' } });
  // @ts-expect-error JSON has no dates
  await client.publishIn(60, { exchange: 'orders', properties: { headers: { a: new Date() } } });
  // @ts-expect-error the args are not those of the definition
  await client.enqueue(orderMail, ['Ann']);
  // @ts-expect-error the args are missing
  await client.enqueue(orderMail);
  // @ts-expect-error undefined in an array would be refused
  await client.enqueue('Any', [undefined]);
  // @ts-expect-error and deep in it
  await client.enqueue('Any', [{ a: [1, undefined] }]);
  // @ts-expect-error JSON has no Map
  await client.enqueue('Any', [new Map<string, string>()]);
  // @ts-expect-error JSON has no functions
  await client.enqueue('Any', [() => 1]);
  // @ts-expect-error it may be anything
  await client.enqueue('Any', [unknownValue]);
  // @ts-expect-error there is no such option
  await client.enqueue('Any', [], { quue: 'x' });
  await client.enqueue('Any', [{ left: undefined, out: 1 }]);
  // @ts-expect-error no args that JSON has
  defineJob<[Set<string>]>('Bad');
  // @ts-expect-error undefined in an array would be refused here too
  await client.enqueueBulk([{ class: 'Any', args: [undefined] }]);
  // @ts-expect-error the args are not those of the definition
  await client.enqueueBulk([{ class: orderMail, args: ['Ann'] }]);
  const jids: string[] = await client.enqueueBulk([{ class: 'Any', args: [mail] }, { class: orderMail, args: [mail], options: { tags: ['x'] } }, { class: 'None' }]);
  await client.enqueueBulk([1, 2].map((n) => ({ class: 'Any', args: [n] })));
  const made: NewJob[] = [{ class: 'Any', args: [1] }];
  await client.enqueueBulk(made);
  return [jid, ...jids];
}

export const logger: Logger = console;
export const worker = new Worker({ url: 'amqps://localhost', tls, logger: false })
  .handle(orderMail, async (job) => {
    const due: string = job.args[0].due;
    const total: number = job.args[0].total;
    const note: string | undefined = job.args[0].note;
    // @ts-expect-error a Date arrives as text
    job.args[0].due.getTime();
    return [due, total, note, job.fields.tenant];
  }, { retryIn: (count, error, job) => count * job.args[0].order, timeout: 3 })
  .handle('Any', (job: Job) => job.args[0].anything)
  .on('failure', (job, error) => console.log(job.jid, error))
  .on('death', (job) => job.fields.tenant)
  // @ts-expect-error there is no such hook
  .on('dead', () => 1);

export const middleware: ClientMiddleware = (job, next) => {
  if (job.class === 'Never') return null;
  job.args.push(1);
  return next();
};
export const timed: ClientMiddleware = async (_job, next) => {
  const began = Date.now();
  await next();
  return Date.now() - began; // is ignored
};
export const client = new Client({ url: ['amqps://a', 'amqps://b'], timeout: 2, tls }).use(middleware).use(timed);
export const rotating = [
  new Client({ credentials: () => ({ username: 'app', password: 'x' }) }), new Worker({ credentials: async () => ({ username: 'app', password: 'x' }) }),
  // @ts-expect-error the password is missing
  new Client({ credentials: () => ({ username: 'app' }) }),
];

export async function tested(): Promise<number> {
  const fake = new Fake(worker);
  await fake.enqueue(orderMail, [mail]);
  const { status, retryIn = 0 } = await new Attempt(worker, { class: orderMail, args: [mail] }, { attempt: 3 }).cancel().run();
  const again = new Unconfirmed('x', 'jid').jid;
  return (await fake.drain({ retries: true })) + retryIn + status.length + again.length + fake.dead(orderMail).length;
}
