// Spans of OpenTelemetry, with its SDK.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Discard, HandBack, Invalid, Worker } from 'millrace-jobs';
import { traceClient, traceWorker } from 'millrace-jobs/otel';
import { Fake } from 'millrace-jobs/testing';

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
beforeEach(() => exporter.reset());

let seen;
const worker = (options) => traceWorker(new Worker({ url: 'amqp://localhost', logger: false }), { tracerProvider, ...options }).handle('Greet', (job) => {
  seen = trace.getActiveSpan()?.spanContext().spanId;
  if (job.args[0] === 'fails' && job.retryCount === 0) throw new RangeError('no such name');
  if (job.args[0] === 'discarded') throw new Discard('not wanted');
  if (job.args[0] === 'handed back') throw new HandBack();
});
const client = (options) => traceClient(new Fake(worker(options)), { tracerProvider });
const named = (name) => exporter.getFinishedSpans().filter((span) => span.name === name);

test('a job and its first attempt are one trace', async () => {
  const fake = client();
  const jid = await fake.enqueue('Greet', ['Ann'], { queue: 'mail' });
  await fake.drain();
  const [[sent], [ran]] = [named('publish mail'), named('process mail')];
  assert.deepEqual([sent.kind, ran.kind], [SpanKind.PRODUCER, SpanKind.CONSUMER]);
  assert.equal(ran.spanContext().traceId, sent.spanContext().traceId);
  assert.equal(ran.parentSpanContext.spanId, sent.spanContext().spanId);
  assert.equal(seen, ran.spanContext().spanId, 'the handler runs in the span');
  const shared = { 'messaging.system': 'rabbitmq', 'messaging.destination.name': 'mail', 'messaging.message.id': jid, 'millrace.class': 'Greet' };
  assert.deepEqual(sent.attributes, { ...shared, 'messaging.operation.name': 'publish', 'messaging.operation.type': 'send' });
  assert.deepEqual(ran.attributes, { ...shared, 'messaging.operation.name': 'process', 'messaging.operation.type': 'process', 'millrace.attempt': 1 });
  assert.equal(ran.status.code, SpanStatusCode.UNSET);
});

test('a trace context of your own is the parent', async () => {
  const fake = client();
  await fake.enqueue('Greet', [], { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });
  const [sent] = named('publish default');
  assert.equal(sent.parentSpanContext.spanId, 'b7ad6b7169203331');
  assert.equal(sent.spanContext().traceId, '0af7651916cd43dd8448eb211c80319c');
});

test('scheduled jobs and retries are linked', async () => {
  const fake = client();
  await fake.enqueueIn(60, 'Greet', ['fails']);
  await fake.drain({ retries: true });
  const [[sent], attempts] = [named('publish default'), named('process default')];
  assert.deepEqual(attempts.map((span) => span.attributes['millrace.attempt']), [1, 2]);
  for (const span of attempts) {
    assert.equal(span.parentSpanContext, undefined);
    assert.notEqual(span.spanContext().traceId, sent.spanContext().traceId);
    assert.deepEqual(span.links.map((link) => link.context.spanId), [sent.spanContext().spanId]);
  }
  const [failed] = attempts;
  assert.deepEqual([failed.status.code, failed.attributes['error.type'], failed.events[0].name], [SpanStatusCode.ERROR, 'RangeError', 'exception']);
});

test('the parent can be chosen', async () => {
  let fake = client({ parent: 'child' });
  await fake.enqueueIn(60, 'Greet');
  await fake.drain();
  assert.equal(named('process default')[0].parentSpanContext.spanId, named('publish default')[0].spanContext().spanId);
  exporter.reset();
  fake = client({ parent: 'link' });
  await fake.enqueue('Greet');
  await fake.drain();
  assert.equal(named('process default')[0].parentSpanContext, undefined);
  assert.throws(() => worker({ parent: /** @type {any} */ ('other') }), TypeError);
});

test('a decision about a job is no error', async () => {
  const fake = client();
  await fake.enqueue('Greet', ['discarded']);
  await fake.drain();
  const [ran] = named('process default');
  assert.deepEqual([ran.status.code, ran.events], [SpanStatusCode.UNSET, []]);
});

test('a job that is not enqueued', async () => {
  await assert.rejects(client().enqueue('Greet', /** @type {any} */ ([NaN])), Invalid);
  assert.equal(named('publish default')[0].status.code, SpanStatusCode.ERROR);
});

test('a job without a usable trace context', async () => {
  const fake = new Fake(worker());
  await fake.enqueue('Greet');
  await fake.enqueue('Greet', [], { traceparent: 'nonsense' });
  await fake.drain();
  for (const span of named('process default')) assert.deepEqual([span.parentSpanContext, span.links], [undefined, []]);
});
