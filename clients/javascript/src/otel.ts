/**
 * OpenTelemetry: a span for each job that is enqueued, and one for each attempt. It needs the
 * package @opentelemetry/api, and a program that configures OpenTelemetry. Names and attributes
 * follow the semantic conventions of messaging systems.
 */
import {
  context, isSpanContextValid, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Attributes, type Context, type Span, type SpanContext,
  type Tracer, type TracerProvider,
} from '@opentelemetry/api';
import { Discard, HandBack } from './errors.js';
import type { WorkerMiddleware } from './handler.js';
import type { Job } from './job.js';
import type { ClientMiddleware } from './types.js';
import { VERSION } from './version.js';

/** How spans are made. */
export interface TraceOptions {
  /** The default is the one that OpenTelemetry was configured with. */
  tracerProvider?: TracerProvider;
}

/** How spans of a worker are made. */
export interface WorkerTraceOptions extends TraceOptions {
  /**
   * How the span of an attempt refers to the span that enqueued the job. A `child` is in the same
   * trace. With `link`, the span begins a trace of its own, and has a link. `auto`, the default,
   * makes a child of the first attempt of a job that was not scheduled, and links all others: they
   * may come days later.
   */
  parent?: 'auto' | 'child' | 'link';
}

const tracerOf = ({ tracerProvider = trace.getTracerProvider() }: TraceOptions): Tracer => tracerProvider.getTracer('millrace-jobs', VERSION);

const attributesOf = (operation: string, type: string, queue: string, className: string): Attributes => ({
  'messaging.system': 'rabbitmq', 'messaging.operation.name': operation, 'messaging.operation.type': type,
  'messaging.destination.name': queue, 'millrace.class': className,
});

const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;

/** Returns the span that a trace context names, if it names one. */
function namedBy(traceparent: string | undefined): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/.exec(traceparent ?? '') ?? [];
  const sender = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(sender) ? sender : undefined;
}

/** Returns whether a job was enqueued for a later time. */
function isScheduled(job: Job): boolean {
  const text = job.raw.toString();
  return text.includes('"created_at"') && 'created_at' in JSON.parse(text);
}

/** Runs a function in a span. An error that counts becomes the span's. */
async function within<T>(span: Span, at: Context, call: () => Promise<T>, counts: (error: unknown) => boolean = () => true): Promise<T> {
  try {
    return await context.with(trace.setSpan(at, span), call);
  } catch (error) {
    if (counts(error)) fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

function fail(span: Span, error: unknown): void {
  const { name, message } = error instanceof Error ? error : { name: typeof error, message: String(error) };
  span.recordException(error instanceof Error ? error : message);
  span.setAttribute('error.type', name);
  span.setStatus({ code: SpanStatusCode.ERROR, message: `${name}: ${message}` });
}

/**
 * Makes a client begin a span `publish <queue>` for each job that it enqueues. If the job has a
 * traceparent, for instance from an outbox, that is the parent of the span.
 */
export function traceClient<C extends { use(middleware: ClientMiddleware): unknown }>(client: C, options: TraceOptions = {}): C {
  const tracer = tracerOf(options);
  client.use((job, next) => {
    const queue = job.options.queue ?? 'default';
    const parent = namedBy(job.options.traceparent);
    const at = parent ? trace.setSpanContext(context.active(), parent) : context.active();
    const span = tracer.startSpan(`publish ${queue}`, { kind: SpanKind.PRODUCER, attributes: attributesOf('publish', 'send', queue, job.class) }, at);
    if (isSpanContextValid(span.spanContext())) job.options = { ...job.options, traceparent: traceparentOf(span.spanContext()) };
    return within(span, at, async () => {
      const jid = await next();
      if (jid) span.setAttribute('messaging.message.id', jid);
      return jid;
    });
  });
  return client;
}

/**
 * Makes a worker begin a span `process <queue>` for each attempt. Add it before other middleware, so
 * that the span has theirs in it.
 */
export function traceWorker<W extends { use(middleware: WorkerMiddleware): unknown }>(worker: W, options: WorkerTraceOptions = {}): W {
  const { parent = 'auto' } = options;
  if (!['auto', 'child', 'link'].includes(parent)) throw new TypeError(`millrace: parent is ${String(parent)}, not auto, child or link`);
  const tracer = tracerOf(options);
  worker.use((job, next) => {
    const sender = namedBy(job.traceparent);
    const child = parent === 'child' || (parent === 'auto' && job.retryCount === 0 && !isScheduled(job));
    const at = sender && child ? trace.setSpanContext(ROOT_CONTEXT, sender) : ROOT_CONTEXT;
    const attributes = { ...attributesOf('process', 'process', job.queue, job.class), 'messaging.message.id': job.jid, 'millrace.attempt': job.attempt };
    const links = sender && !child ? [{ context: sender }] : [];
    const span = tracer.startSpan(`process ${job.queue}`, { kind: SpanKind.CONSUMER, attributes, links }, at);
    // What decides about a job is no error of the program.
    return within(span, at, async () => next(), (error) => !(error instanceof Discard || error instanceof HandBack));
  });
  return worker;
}
