// Enqueues three jobs in a span. Run by internal/readmetest, with a broker at MILLRACE_AMQP_URL, a
// queue QUEUE, and a file SPANS for the spans.
import { appendFileSync } from 'node:fs';
import { context, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Client } from 'millrace-jobs';
import { traceClient } from 'millrace-jobs/otel';

const exporter = {
  export(spans, done) {
    for (const span of spans) {
      const { traceId, spanId } = span.spanContext();
      appendFileSync(process.env.SPANS, `${JSON.stringify({
        name: span.name, kind: SpanKind[span.kind], trace: traceId, span: spanId,
        parent: span.parentSpanContext?.spanId ?? '', links: [], attributes: span.attributes,
      })}\n`);
    }
    done({ code: 0 });
  },
  async shutdown() {},
};
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const client = traceClient(new Client({ url: process.env.MILLRACE_AMQP_URL }), { tracerProvider });

const request = tracerProvider.getTracer('test').startSpan('POST /orders');
await context.with(trace.setSpan(context.active(), request), async () => {
  const options = { queue: process.env.QUEUE };
  await client.enqueue('Order', ['runs'], options);
  await client.enqueue('Order', ['fails'], options);
  await client.enqueueIn(1, 'Order', ['waits'], options);
});
request.end();
await client.close();
