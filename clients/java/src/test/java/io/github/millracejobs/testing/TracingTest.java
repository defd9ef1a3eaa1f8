package io.github.millracejobs.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.millracejobs.Discard;
import io.github.millracejobs.InvalidException;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Tracing;
import io.github.millracejobs.Worker;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.testing.junit5.OpenTelemetryExtension;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.helpers.NOPLogger;

class TracingTest {
    @RegisterExtension
    static final OpenTelemetryExtension TELEMETRY = OpenTelemetryExtension.create();

    private String seen;

    private Worker worker(Tracing.Parent parent) {
        Tracing tracing = new Tracing(TELEMETRY.getOpenTelemetry(), parent);
        return Worker.builder("amqp://nowhere.invalid").logger(NOPLogger.NOP_LOGGER).build().use(tracing::process).handle("Greet", job -> {
            seen = Span.current().getSpanContext().getSpanId();
            if (job.args().equals(List.of("fails")) && job.retryCount() == 0) {
                throw new IndexOutOfBoundsException("no such name");
            }
            if (job.args().equals(List.of("discarded"))) {
                throw new Discard("not wanted");
            }
        });
    }

    private Fake client(Tracing.Parent parent) {
        return new Fake(worker(parent)).use(new Tracing(TELEMETRY.getOpenTelemetry())::publish);
    }

    private static List<SpanData> named(String name) {
        return TELEMETRY.getSpans().stream().filter(span -> span.getName().equals(name)).toList();
    }

    @Test
    void aJobAndItsFirstAttemptAreOneTrace() {
        Fake client = client(Tracing.Parent.AUTO);
        String jid = client.enqueue(NewJob.of("Greet", "Ann").queue("mail"));
        client.drain();
        SpanData sent = named("publish mail").get(0);
        SpanData ran = named("process mail").get(0);
        assertEquals(List.of(SpanKind.PRODUCER, SpanKind.CONSUMER), List.of(sent.getKind(), ran.getKind()));
        assertEquals(List.of(sent.getTraceId(), sent.getSpanId(), seen), List.of(ran.getTraceId(), ran.getParentSpanId(), ran.getSpanId()));
        Attributes shared = Attributes.builder().put("messaging.system", "rabbitmq").put("messaging.destination.name", "mail")
                .put("messaging.message.id", jid).put("millrace.class", "Greet").build();
        assertEquals(shared.toBuilder().put("messaging.operation.name", "publish").put("messaging.operation.type", "send").build().asMap(),
                sent.getAttributes().asMap());
        assertEquals(shared.toBuilder().put("messaging.operation.name", "process").put("messaging.operation.type", "process")
                .put("millrace.attempt", 1L).build().asMap(), ran.getAttributes().asMap());
        assertEquals(StatusCode.UNSET, ran.getStatus().getStatusCode());
    }

    @Test
    void aTraceContextOfYourOwnIsTheParent() {
        client(Tracing.Parent.AUTO).enqueue(NewJob.of("Greet").traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        SpanData sent = named("publish default").get(0);
        assertEquals(List.of("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"), List.of(sent.getTraceId(), sent.getParentSpanId()));
    }

    @Test
    void scheduledJobsAndRetriesAreLinked() {
        Fake client = client(Tracing.Parent.AUTO);
        client.enqueueIn(Duration.ofMinutes(1), "Greet", "fails");
        client.drainWithRetries();
        SpanData sent = named("publish default").get(0);
        List<SpanData> attempts = named("process default");
        assertEquals(List.of(1L, 2L), attempts.stream().map(span -> span.getAttributes().get(AttributeKey.longKey("millrace.attempt"))).toList());
        for (SpanData span : attempts) {
            assertEquals("0000000000000000", span.getParentSpanId());
            assertNotEquals(sent.getTraceId(), span.getTraceId());
            assertEquals(List.of(sent.getSpanId()), span.getLinks().stream().map(link -> link.getSpanContext().getSpanId()).toList());
        }
        SpanData failed = attempts.get(0);
        assertEquals(StatusCode.ERROR, failed.getStatus().getStatusCode());
        assertEquals("java.lang.IndexOutOfBoundsException", failed.getAttributes().get(AttributeKey.stringKey("error.type")));
        assertEquals("exception", failed.getEvents().get(0).getName());
    }

    @Test
    void theParentCanBeChosen() {
        Fake client = client(Tracing.Parent.CHILD);
        client.enqueueIn(Duration.ofMinutes(1), "Greet");
        client.drain();
        assertEquals(named("publish default").get(0).getSpanId(), named("process default").get(0).getParentSpanId());
        TELEMETRY.clearSpans();
        client = client(Tracing.Parent.LINK);
        client.enqueue("Greet");
        client.drain();
        assertEquals("0000000000000000", named("process default").get(0).getParentSpanId());
    }

    @Test
    void aDecisionAboutAJobIsNoError() {
        Fake client = client(Tracing.Parent.AUTO);
        client.enqueue("Greet", "discarded");
        client.drain();
        SpanData ran = named("process default").get(0);
        assertEquals(StatusCode.UNSET, ran.getStatus().getStatusCode());
        assertEquals(List.of(), ran.getEvents());
    }

    @Test
    void aJobThatIsNotEnqueued() {
        Fake client = client(Tracing.Parent.AUTO);
        assertThrows(InvalidException.class, () -> client.enqueue("Greet", new Object()));
        assertEquals(StatusCode.ERROR, named("publish default").get(0).getStatus().getStatusCode());
    }

    @Test
    void aJobWithoutAUsableTraceContext() {
        Fake client = new Fake(worker(Tracing.Parent.AUTO));
        client.enqueue("Greet");
        client.enqueue(NewJob.of("Greet").traceparent("nonsense"));
        client.drain();
        for (SpanData span : named("process default")) {
            assertEquals("0000000000000000", span.getParentSpanId());
            assertTrue(span.getLinks().isEmpty());
        }
    }
}
