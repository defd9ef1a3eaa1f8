package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import io.github.millracejobs.Vectors.Case;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class NewJobTest {
    /** The case "args no array" is left out, because the type of args is a list. */
    @TestFactory
    Stream<DynamicTest> publish() throws IOException {
        return Vectors.each("publish", c -> {
            if (c.get("args") instanceof List<?>) {
                publish(c);
            } else {
                assertEquals("args no array", c.text("name"));
            }
        });
    }

    /** Cases are left out that the builder of Unique cannot express. */
    @TestFactory
    Stream<DynamicTest> unique() throws IOException {
        Set<String> inexpressible = Set.of("a key and parts", "a part that is no text", "parts that are no list", "another while", "another on",
                "a member that unique does not have", "unique is a text", "the defaults in words");
        return Vectors.each("unique", c -> {
            if (!inexpressible.contains(c.text("name"))) {
                publish(c);
            }
        });
    }

    @TestFactory
    Stream<DynamicTest> queues() throws IOException {
        return Vectors.each("queues", c -> {
            Map<?, ?> given = c.part("queue").members();
            GovernedQueue queue = GovernedQueue.of((String) given.get("name"));
            given.forEach((name, value) -> {
                switch ((String) name) {
                    case "key" -> queue.key((String) value);
                    case "max_waiting" -> queue.maxWaiting((Long) value);
                    case "weights" -> ((Map<?, ?>) value).forEach((key, turns) -> queue.weight((String) key, (Long) turns));
                    case "ahead" -> queue.ahead((Long) value);
                    case "paused" -> queue.paused();
                    default -> assertEquals("name", name);
                }
            });
            if (c.get("error") != null) {
                assertThrows(InvalidException.class, queue::definition);
            } else {
                assertEquals(given, queue.definition());
            }
        });
    }

    private static Unique unique(Object value) {
        if (!(value instanceof Map<?, ?> members)) {
            return Boolean.TRUE.equals(value) ? Unique.of() : null;
        }
        Unique unique = members.get("key") instanceof String key ? Unique.key(key)
                : members.get("by") instanceof List<?> parts ? Unique.by(parts.toArray(String[]::new)) : Unique.of();
        members.forEach((name, member) -> {
            switch ((String) name) {
                case "while" -> unique.whileWaiting();
                case "on" -> unique.replace();
                case "for" -> unique.forAtLeast(span(member));
                case "wait" -> unique.putOff(span(member));
                case "max" -> unique.putOffAtMost(span(member));
                default -> assertTrue(Set.of("key", "by").contains(name), (String) name);
            }
        });
        return unique;
    }

    private static Duration span(Object seconds) {
        return Duration.ofNanos(Math.round(((Number) seconds).doubleValue() * 1e9));
    }

    private static void publish(Case c) throws IOException {
        NewJob job = NewJob.withArgs(c.text("class"), (List<?>) c.get("args"));
        if (c.get("jid") != null) {
            job.jid(c.text("jid"));
        }
        c.part("options").members().forEach((name, value) -> option(job, (String) name, value));
        if (c.get("at") != null) {
            job.at(time(c.get("at")));
        }
        if (c.get("error") != null) {
            assertThrows(InvalidException.class, () -> job.prepare(c.number("now")));
            return;
        }
        Message message = job.prepare(c.number("now")).message();
        assertEquals(c.text("exchange"), message.exchange());
        assertEquals(c.text("routing_key"), message.key());
        assertValue(c.get("body"), Json.read(message.body()));
        Map<String, Object> properties = published(message);
        // A Publisher sends all messages with it.
        assertEquals(true, c.part("properties").get("mandatory"));
        properties.put("mandatory", true);
        c.part("properties").members().forEach((name, value) -> assertValue(value, properties.get(name)));
    }

    static void option(NewJob job, String name, Object value) {
        switch (name) {
            case "queue" -> job.queue((String) value);
            case "retry" -> Objects.requireNonNull(value instanceof Boolean again ? job.retry(again) : job.retry((Long) value));
            case "priority" -> job.priority(((Long) value).intValue());
            case "tags" -> job.tags(((List<?>) value).toArray(String[]::new));
            case "jid" -> job.jid((String) value);
            case "expires_at" -> job.expiresAt(time(value));
            case "timeout" -> job.timeout(Duration.ofMillis(Math.round(((Number) value).doubleValue() * 1000)));
            case "dead" -> job.dead((Boolean) value);
            case "backtrace" -> job.backtrace(((Long) value).intValue());
            case "fields" -> ((Map<?, ?>) value).forEach((field, content) -> job.field((String) field, content));
            case "traceparent" -> job.traceparent((String) value);
            case "limited" -> job.limited((Boolean) value);
            case "limit_key" -> job.limitKey((String) value);
            case "unique" -> job.unique(unique(value));
            default -> throw new IllegalArgumentException(name);
        }
    }

    static Instant time(Object seconds) {
        return Instant.ofEpochSecond(0, Math.round(((Number) seconds).doubleValue() * 1e6) * 1000);
    }

    static void assertValue(Object wanted, Object got) {
        if (wanted instanceof Map<?, ?> map && got instanceof Map<?, ?> other) {
            assertEquals(map.keySet(), other.keySet());
            map.forEach((name, value) -> assertValue(value, other.get(name)));
        } else {
            VectorsTest.assertSame(wanted, got, "value");
        }
    }

    /** Returns the properties that the AMQP library gets. */
    private static Map<String, Object> published(Message message) {
        AMQP.BasicProperties p = Publisher.properties(message).build();
        Map<String, Object> found = new HashMap<>();
        found.put("content_type", p.getContentType());
        found.put("delivery_mode", p.getDeliveryMode());
        found.put("message_id", p.getMessageId());
        found.put("type", p.getType());
        found.put("priority", p.getPriority());
        found.put("headers", Objects.requireNonNullElse(p.getHeaders(), Map.of()));
        return found;
    }

    @Test
    void whatIsNoJson() {
        List<Object> circle = new ArrayList<>();
        circle.add(circle);
        for (Object bad : Arrays.asList(Double.NaN, Float.POSITIVE_INFINITY, new Object(), Map.of(1, 2), Map.of("\ud800", 1), circle, new Thread())) {
            assertThrows(InvalidException.class, () -> Job.of(NewJob.of("A", bad)));
        }
        assertThrows(InvalidException.class, () -> Job.of(NewJob.withArgs("A", null)));
        assertThrows(InvalidException.class, () -> Job.of(NewJob.of("A", "x".repeat(Wire.MAX_RECORD))));
        assertThrows(InvalidException.class, () -> Job.of(NewJob.of("A").timeout(Duration.ZERO)));
    }

    @Test
    void whatIsJson() {
        Job job = Job.of(NewJob.of("A", 1, (short) 2, new int[] {3}, new String[] {"x"}, 1.5f, null, Map.of("a", List.of())));
        assertEquals(Arrays.asList(1L, 2L, List.of(3L), List.of("x"), 1.5, null, Map.of("a", List.of())), job.args());
    }

    @Test
    void jidsAreRandom() {
        String jid = Job.of(NewJob.of("A")).jid();
        assertTrue(jid.matches("[0-9a-f]{32}"), jid);
    }
}
