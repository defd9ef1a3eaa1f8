package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.millracejobs.Vectors.Case;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

class VectorsTest {
    @TestFactory
    Stream<DynamicTest> hosts() throws IOException {
        return Vectors.each("hosts", c -> {
            if (c.get("error") == null) {
                assertEquals(c.get("hosts"), Urls.split(c.texts("urls")));
                return;
            }
            assertEquals(c.text("error"), assertThrows(IllegalArgumentException.class, () -> Urls.split(c.texts("urls"))).getMessage());
        });
    }

    @TestFactory
    Stream<DynamicTest> hostOrder() throws IOException {
        return Vectors.each("host_order", c -> {
            List<?> groups = (List<?>) c.get("order");
            Set<String> firsts = new HashSet<>();
            for (int i = 0; i < 200; i++) {
                List<String> order = Hosts.tryOrder(c.texts("hosts"), c.text("good"), Boolean.TRUE.equals(c.get("lost")));
                order.stream().findFirst().ifPresent(firsts::add);
                int at = 0;
                for (Object group : groups) {
                    int end = at + ((List<?>) group).size();
                    assertEquals(Set.copyOf((List<?>) group), Set.copyOf(order.subList(at, end)));
                    at = end;
                }
                assertEquals(at, order.size());
            }
            assertEquals(Set.copyOf((List<?>) groups.get(0)), firsts, "each comes first at times");
        });
    }

    @TestFactory
    Stream<DynamicTest> control() throws IOException {
        return Vectors.each("control", c -> {
            Worker worker = Worker.builder("amqp://localhost").queues("a", "b").build();
            obeys(worker, c.texts("messages"));
            assertEquals(c.text("state"), worker.state());
            Set<String> paused = new HashSet<>(c.texts("paused"));
            for (String queue : List.of("a", "b", "other", "")) {
                assertEquals(paused.contains(queue), worker.isPaused(queue), queue);
            }
        });
    }

    private static void obeys(Worker worker, List<String> messages) {
        for (String message : messages) {
            Control.obey(worker, message.replace("IDENTITY", worker.identity()).getBytes(StandardCharsets.UTF_8));
        }
    }

    @TestFactory
    Stream<DynamicTest> heartbeat() throws IOException {
        return Vectors.each("heartbeat", c -> {
            Worker worker = worker(c.part("worker"));
            obeys(worker, c.texts("messages"));
            Map<String, Object> beat = Json.object(Json.write(Heartbeat.of(worker, c.get("rtt_us") == null ? 0 : c.whole("rtt_us"))));
            String identity = c.text("identity").replace("HOSTNAME", Host.NAME).replace("PID", Long.toString(Host.PID));
            assertEquals(identity, beat.remove("identity"));
            assertEquals(Host.NAME, beat.remove("hostname"));
            assertEquals(ProcessHandle.current().pid(), beat.remove("pid"));
            assertTrue(((Number) beat.remove("started_at")).doubleValue() <= ((Number) beat.remove("beat")).doubleValue());
            assertTrue(beat.remove("rss_kb") instanceof Long);
            assertEquals(c.get("heartbeat"), beat);
        });
    }

    /** Returns a worker with the settings of a vector. */
    private static Worker worker(Case settings) {
        WorkerBuilder builder = Worker.builder("amqp://localhost").version(settings.text("version"));
        if (settings.get("queues") instanceof List<?>) {
            builder.queues(settings.texts("queues").toArray(new String[0]));
        } else if (settings.get("queues") != null) {
            builder.queues(weights(settings));
        }
        if (settings.get("concurrency") != null) {
            builder.concurrency((int) settings.whole("concurrency"));
        }
        if (settings.get("tag") != null) {
            builder.tag(settings.text("tag"));
        }
        if (settings.get("labels") instanceof Map<?, ?> labels) {
            labels.forEach((name, value) -> builder.label((String) name, (String) value));
        }
        if (settings.get("lanes") instanceof List<?> lanes) {
            for (Object members : lanes) {
                Case lane = new Case((Map<?, ?>) members);
                Lane made = lane.get("queues") instanceof List<?> ? Lane.strict(lane.text("name"), lane.texts("queues").toArray(new String[0]))
                        : Lane.weighted(lane.text("name"), weights(lane));
                builder.lane(made.concurrency((int) lane.whole("concurrency")));
            }
        }
        return builder.build();
    }

    private static Map<String, Integer> weights(Case lane) {
        Map<String, Integer> weights = new LinkedHashMap<>();
        lane.part("queues").members().forEach((name, weight) -> weights.put((String) name, ((Number) weight).intValue()));
        return weights;
    }

    @TestFactory
    Stream<DynamicTest> metrics() throws IOException {
        return Vectors.each("metrics", c -> {
            Case delivery = c.part("delivery");
            Double sent = delivery.get("timestamp") == null ? null : Double.valueOf(delivery.number("timestamp"));
            Job job = Job.read(delivery.body(), delivery.text("queue"), Map.of(), delivery.text("message_id"), sent);
            double ended = c.number("ended");
            Metric metric = new Metric(job, Outcome.SUCCEEDED, ended, ended - c.number("took"), Math.round(c.number("took") * 1000));
            assertEquals(c.part("metric").members().keySet(), assertMetric(c.part("metric").members(), metric).keySet());
        });
    }

    @TestFactory
    Stream<DynamicTest> backoff() throws IOException {
        return Vectors.each("backoff", c -> {
            assertEquals(c.whole("min"), Verdict.backoff(c.whole("retry_count"), most -> 0));
            assertEquals(c.whole("max"), Verdict.backoff(c.whole("retry_count"), most -> most));
        });
    }

    @TestFactory
    Stream<DynamicTest> splice() throws IOException {
        return Vectors.each("splice", c -> {
            Job job = Job.read(c.body(), c.text("queue"), Map.of(), "", null);
            Outcome outcome = Verdict.judge(job, new IllegalStateException("x"), 1, false, null, null);
            withoutJob(outcome.record(), c.text("job"));
        });
    }

    @TestFactory
    Stream<DynamicTest> undecodable() throws IOException {
        return Vectors.each("undecodable", c -> {
            if (Boolean.FALSE.equals(c.get("decodable"))) {
                assertThrows(Unreadable.class, () -> Job.read(c.body(), "default", Map.of(), "", null));
                return;
            }
            Job job = Job.read(c.body(), "default", Map.of(), "none", null);
            assertEquals(c.text("jid").isEmpty() ? "none" : c.text("jid"), job.jid());
            assertEquals(c.text("class"), job.className());
            assertEquals(c.whole("retry"), job.members.retry());
            assertEquals(c.whole("retry_count"), job.retryCount());
        });
    }

    @TestFactory
    Stream<DynamicTest> poison() throws IOException {
        return Vectors.each("poison", c -> {
            Begins begins = new Begins();
            ((List<?>) c.get("stream")).forEach(record -> begins.apply(Json.write(record)));
            BeginKey key = new BeginKey(c.part("key").text("jid"), c.part("key").text("body"));
            Set<String> gone = new HashSet<>();
            ((List<?>) c.get("gone")).forEach(queue -> gone.add((String) queue));
            Double enqueuedAt = c.get("enqueued_at") == null ? null : Double.valueOf(c.number("enqueued_at"));
            String blames = begins.blame(key, c.text("queue"), c.text("self"), enqueuedAt, gone);
            assertEquals(c.text("blames"), blames);
            begins.begun(key, c.text("self"), blames, Wire.now());
            assertEquals(c.whole("deaths"), begins.deaths(key, c.text("self"), gone));
        });
    }

    @TestFactory
    Stream<DynamicTest> outcomes() throws IOException {
        return Vectors.each("outcomes", this::outcome);
    }

    private void outcome(Case c) throws Exception {
        Case delivery = c.part("delivery");
        Map<String, Object> headers = Json.object(Json.write(delivery.get("headers")));
        if (c.part("outcome").text("kind").equals("undecodable")) {
            assertThrows(Unreadable.class, () -> Job.read(delivery.body(), delivery.text("queue"), headers, "", null));
            return;
        }
        Job job = Job.read(delivery.body(), delivery.text("queue"), headers, delivery.text("message_id"), null);
        Outcome outcome = outcome(job, c.part("outcome"), c.number("now"));
        assertEquals(Objects.requireNonNullElse(c.text("stream"), ""), outcome.stream());
        assertEquals(c.text("then"), outcome.then().name().toLowerCase(Locale.ROOT));
        if (c.get("record") == null) {
            assertNull(outcome.record());
        } else {
            assertRecord(c.part("record").members(), withoutJob(outcome.record(), c.text("job")));
            assertEquals(c.get("headers"), Objects.requireNonNullElse(Wire.traceHeaders(job.traceparent()), Map.of()));
        }
        if (c.get("metric") == null) {
            assertNull(outcome.status());
        } else {
            assertMetric(c.part("metric").members(), new Metric(job, outcome, c.number("now"), c.number("now"), 0));
        }
    }

    private static Outcome outcome(Job job, Case said, double now) {
        Throwable error = switch (said.text("kind")) {
            case "success" -> null;
            case "fail" -> new Boom(said);
            case "retry_in" -> new RetryIn(Duration.ofMillis(Math.round(said.number("seconds") * 1000)), new Boom(said));
            case "discard" -> new Discard("why not");
            case "kill" -> withoutPlaces(new Kill(said.text("message")));
            case "hand_back" -> withoutPlaces(new HandBack());
            case "unknown_class" -> WorkerException.unknownClass(job.className());
            case "timeout" -> WorkerException.timeout(said.number("seconds"), null);
            case "expired" -> {
                assertTrue(job.isExpired(now));
                yield WorkerException.expired();
            }
            default -> WorkerException.poison((int) said.whole("deaths"));
        };
        return switch (said.text("kind")) {
            case "success" -> Outcome.SUCCEEDED;
            case "expired" -> Verdict.expire(job, now);
            case "poison" -> Verdict.poison(job, (int) said.whole("deaths"), now);
            default -> Verdict.judge(job, error, now, Boolean.TRUE.equals(said.get("stopping")), null, null);
        };
    }

    /**
     * Removes the stack, because vectors expect no backtrace of an error that the library makes.
     */
    private static Throwable withoutPlaces(Throwable error) {
        error.setStackTrace(new StackTraceElement[0]);
        return error;
    }

    private static void assertRecord(Map<?, ?> wanted, Map<String, Object> got) {
        assertEquals(wanted.keySet(), got.keySet());
        wanted.forEach((name, value) -> {
            if (value instanceof Map<?, ?> range) {
                double number = ((Number) got.get(name)).doubleValue();
                assertTrue(new Case(range).number("min") <= number && number <= new Case(range).number("max"), name + " is " + number);
            } else {
                assertSame(value, got.get(name), name);
            }
        });
    }

    private static Map<String, Object> assertMetric(Map<?, ?> wanted, Metric metric) {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        Metrics metrics = new Metrics("me", clock);
        Map<String, Object> written = Json.object(Json.write(out -> metrics.write(out, metric)));
        clock.shutdown();
        assertNotNull(written);
        wanted.forEach((name, value) -> assertSame(value, written.get(name), name));
        assertEquals(wanted.containsKey("error_class"), written.containsKey("error_class"));
        return written;
    }

    /** Compares numbers by value. */
    static void assertSame(Object wanted, Object got, Object name) {
        if (wanted instanceof Number number && got instanceof Number other) {
            assertEquals(number.doubleValue(), other.doubleValue(), name.toString());
        } else {
            assertEquals(wanted, got, name.toString());
        }
    }

    /** Returns the rest of a record that has exactly these bytes as its job. */
    private static Map<String, Object> withoutJob(byte[] record, String job) {
        String text = new String(record, StandardCharsets.UTF_8);
        String tail = ",\"job\":" + job + "}";
        assertTrue(text.endsWith(tail), text);
        assertNotNull(Json.object(record));
        Map<String, Object> head = Json.object((text.substring(0, text.length() - tail.length()) + "}").getBytes(StandardCharsets.UTF_8));
        assertFalse(head.isEmpty());
        return head;
    }

    /** An error of any class. */
    private static final class Boom extends Exception implements Described {
        private static final long serialVersionUID = 1;

        private final transient Case said;

        Boom(Case said) {
            super(said.text("error_message"));
            this.said = said;
        }

        @Override
        public String errorClass() {
            return said.text("error_class");
        }

        @Override
        public List<String> backtrace() {
            return said.get("backtrace") instanceof List<?> lines ? lines.stream().map(String.class::cast).toList() : List.of();
        }
    }
}
