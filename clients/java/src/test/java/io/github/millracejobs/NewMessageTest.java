package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.millracejobs.Vectors.Case;
import io.github.millracejobs.testing.Fake;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class NewMessageTest {
    /**
     * Properties that do not exist, a number for a text, and an expiration that is no time. Java's
     * types cannot express them.
     */
    private static final Set<String> OTHERS =
            Set.of("unknown property", "user_id", "a property that is no text", "expiration that is no number");

    @TestFactory
    Stream<DynamicTest> messages() throws IOException {
        return Vectors.each("messages", c -> {
            if (!OTHERS.contains(c.text("name"))) {
                messages(c);
            }
        });
    }

    private static void messages(Case c) throws IOException {
        NewMessage message = message(c.part("message"));
        if (c.get("error") != null) {
            assertThrows(InvalidException.class, () -> prepare(message, c));
            return;
        }
        Message published = prepare(message, c);
        assertEquals("", published.exchange());
        assertEquals(Wire.SCHEDULED, published.key());
        NewJobTest.assertValue(c.get("record"), Json.read(published.body()));
    }

    private static Message prepare(NewMessage message, Case c) {
        NewJob job = message.job().jid(c.text("jid")).at(NewJobTest.time(c.get("at")));
        c.part("options").members().forEach((name, value) -> NewJobTest.option(job, (String) name, value));
        return job.prepare(c.number("now")).message();
    }

    private static NewMessage message(Case given) {
        String key = given.get("routing_key") == null ? "" : given.text("routing_key");
        NewMessage message = given.get("body_base64") != null ? NewMessage.of(given.text("exchange"), key, given.body())
                : NewMessage.of(given.text("exchange"), key, given.get("body") == null ? "" : given.text("body"));
        if (given.get("properties") != null) {
            given.part("properties").members().forEach((name, value) -> property(message, (String) name, value));
        }
        return message;
    }

    private static void property(NewMessage message, String name, Object value) {
        switch (name) {
            case "content_type" -> message.contentType((String) value);
            case "content_encoding" -> message.contentEncoding((String) value);
            case "correlation_id" -> message.correlationId((String) value);
            case "reply_to" -> message.replyTo((String) value);
            case "message_id" -> message.messageId((String) value);
            case "type" -> message.type((String) value);
            case "app_id" -> message.appId((String) value);
            case "expiration" -> message.expiration(Duration.ofMillis(Long.parseLong((String) value)));
            case "delivery_mode" -> message.deliveryMode(((Long) value).intValue());
            case "priority" -> message.priority(((Long) value).intValue());
            case "timestamp" -> message.timestamp(NewJobTest.time(value));
            case "headers" -> ((Map<?, ?>) value).forEach((header, content) -> message.header((String) header, content));
            default -> throw new IllegalArgumentException(name);
        }
    }

    private static void refused(String reason, NewMessage message) {
        String said = assertThrows(InvalidException.class, message::job).getMessage();
        assertTrue(said.contains(reason), said);
    }

    private static NewMessage empty() {
        return NewMessage.of("orders", "", "");
    }

    @Test
    void whatIsRefused() {
        refused("the body is null", NewMessage.of("orders", "", (String) null));
        refused("the body has a lone surrogate", NewMessage.of("orders", "", "\ud800"));
        refused("routing key is null", NewMessage.of("orders", null, ""));
        refused("message to orders: app_id is null", empty().appId(null));
        refused("expiration is negative", empty().expiration(Duration.ofMillis(-1)));
        refused("delivery_mode must be from 1 to 2", empty().deliveryMode(0));
        refused("the name of a header is no text: null", empty().header(null, 1));
    }

    @Test
    void headersThatJsonDoesNotHave() {
        List<Object> circle = new ArrayList<>();
        circle.add(Map.of("a", circle));
        Map<Object, String> reasons = new HashMap<>();
        reasons.put(Instant.EPOCH, "a header has a java.time.Instant, which JSON does not have");
        reasons.put("x".getBytes(StandardCharsets.UTF_8), "a header has a byte[]");
        reasons.put(BigDecimal.ONE, "a header has a java.math.BigDecimal");
        reasons.put(BigInteger.ONE.shiftLeft(63), "more than 64 bits");
        reasons.put(Map.of(1, 2), "the name of a header is no text: 1");
        reasons.forEach((value, reason) -> refused(reason, empty().header("a", Arrays.asList(null, value))));
        refused("nested deeper than 100", empty().header("a", circle));
        Fake client = new Fake();
        assertThrows(InvalidException.class, () -> client.publishIn(Duration.ZERO, empty().header("a", Double.NaN)));
        assertThrows(InvalidException.class, () -> client.enqueueIn(Duration.ZERO, empty().job().queue("low")));
        assertEquals(List.of(), client.jobs());
    }

    @Test
    void values() {
        Fake client = new Fake();
        BigInteger least = BigInteger.ONE.shiftLeft(63).negate();
        NewMessage message = NewMessage.of("orders", "order.created", "é".getBytes(StandardCharsets.UTF_8))
                .timestamp(Instant.ofEpochMilli(1_577_836_800_900L)).header("least", least).header("whole", 2.0).header("none", null);
        String jid = client.publishAt(Instant.ofEpochSecond(12, 500_000_000), message);
        Job job = client.jobs().get(0).job();
        assertEquals(jid, job.jid());
        assertEquals(Instant.ofEpochSecond(12, 500_000_000), client.jobs().get(0).at());
        Map<String, Object> headers = new HashMap<>(Map.of("least", Long.MIN_VALUE, "whole", 2.0));
        headers.put("none", null);
        assertEquals(Map.of("exchange", "orders", "routing_key", "order.created", "body", "é",
                "properties", Map.of("timestamp", 1_577_836_800L, "headers", headers)), job.arg(0));
    }
}
