package io.github.millracejobs;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * OpenTelemetry: a span for each job that is enqueued, and one for each attempt. It needs
 * opentelemetry-api, on which the library does not depend. Names and attributes follow the semantic
 * conventions of messaging systems.
 *
 * <pre>{@code
 * Tracing tracing = new Tracing(GlobalOpenTelemetry.get());
 * Client client = Client.builder(url).use(tracing::publish).build();
 * worker.use(tracing::process);
 * }</pre>
 *
 * <p>Add it before other middleware, so that the spans have theirs in them.
 */
public final class Tracing {
    /** How the span of an attempt refers to the span that enqueued the job. */
    public enum Parent {
        /**
         * As CHILD for the first attempt of a job that was not scheduled; as LINK for all others,
         * which may come days later.
         */
        AUTO,
        /** It is a child, in the same trace. */
        CHILD,
        /** It begins a trace of its own, and has a link. */
        LINK
    }

    private static final Pattern TRACEPARENT = Pattern.compile("[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2}).*");
    private static final AttributeKey<String> MESSAGE_ID = AttributeKey.stringKey("messaging.message.id");

    private final Tracer tracer;
    private final Parent parent;

    /** Makes spans with {@link Parent#AUTO}. */
    public Tracing(OpenTelemetry telemetry) {
        this(telemetry, Parent.AUTO);
    }

    /** Makes spans. */
    public Tracing(OpenTelemetry telemetry, Parent parent) {
        this.tracer = telemetry.getTracer("millrace", Version.OF_LIBRARY);
        this.parent = parent;
    }

    /**
     * Publishes a job in a span {@code publish <queue>}. It is a {@link ClientMiddleware}. If the
     * job has a traceparent, for instance from an outbox, that is the parent of the span. In {@code
     * enqueueBulk}, the span ends when the job is checked.
     */
    public String publish(NewJob job, ClientMiddleware.Next next) {
        SpanBuilder builder = begin("publish", "send", SpanKind.PRODUCER, job.queue(), job.className());
        SpanContext own = namedBy(job.traceparent());
        if (own.isValid()) {
            builder.setParent(Context.current().with(Span.wrap(own)));
        }
        Span span = builder.startSpan();
        try (Scope scope = span.makeCurrent()) {
            assert scope != null;
            if (span.getSpanContext().isValid()) {
                job.traceparent(traceparent(span.getSpanContext()));
            }
            String jid = next.enqueue(job);
            if (jid != null) {
                span.setAttribute(MESSAGE_ID, jid);
            }
            return jid;
        } catch (RuntimeException | Error e) {
            fail(span, e);
            throw e;
        } finally {
            span.end();
        }
    }

    /**
     * Runs a job in a span {@code process <queue>}. It is a {@link Middleware}.
     *
     * @throws Exception the job failed
     */
    public void process(Job job, Handler next) throws Exception {
        SpanContext sender = namedBy(job.traceparent());
        boolean child = parent == Parent.CHILD || parent == Parent.AUTO && job.retryCount() == 0 && !job.members.scheduled();
        SpanBuilder builder = begin("process", "process", SpanKind.CONSUMER, job.queue(), job.className())
                .setAttribute(MESSAGE_ID, job.jid())
                .setAttribute("millrace.attempt", job.attempt());
        if (sender.isValid() && child) {
            builder.setParent(Context.root().with(Span.wrap(sender)));
        } else {
            builder.setNoParent();
        }
        if (sender.isValid() && !child) {
            builder.addLink(sender);
        }
        Span span = builder.startSpan();
        try (Scope scope = span.makeCurrent()) {
            assert scope != null;
            next.run(job);
        } catch (Discard | HandBack e) { // what decides about a job is no error of the program
            throw e;
        } catch (Throwable e) {
            fail(span, e);
            throw e;
        } finally {
            span.end();
        }
    }

    private SpanBuilder begin(String operation, String type, SpanKind kind, String queue, String className) {
        return tracer.spanBuilder(operation + " " + queue).setSpanKind(kind)
                .setAttribute("messaging.system", "rabbitmq")
                .setAttribute("messaging.operation.name", operation)
                .setAttribute("messaging.operation.type", type)
                .setAttribute("messaging.destination.name", queue)
                .setAttribute("millrace.class", className);
    }

    private static void fail(Span span, Throwable error) {
        span.recordException(error);
        span.setAttribute("error.type", error.getClass().getName());
        span.setStatus(StatusCode.ERROR, error.toString());
    }

    private static String traceparent(SpanContext context) {
        return "00-" + context.getTraceId() + "-" + context.getSpanId() + "-" + context.getTraceFlags().asHex();
    }

    /** Returns the span that a trace context names; an invalid one if it names none. */
    private static SpanContext namedBy(String traceparent) {
        Matcher found = TRACEPARENT.matcher(traceparent == null ? "" : traceparent);
        if (!found.matches()) {
            return SpanContext.getInvalid();
        }
        return SpanContext.createFromRemoteParent(found.group(1), found.group(2), TraceFlags.fromHex(found.group(3), 0), TraceState.getDefault());
    }
}
