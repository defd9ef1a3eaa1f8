package io.github.millracejobs;

import java.math.BigInteger;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A message to delay. Its properties are set one by one: {@code NewMessage.of("orders",
 * "order.created", "{}").contentType("application/json")}.
 */
public final class NewMessage {
    static final String CLASS = "millrace.Message";
    static final String QUEUE = "millrace.messages";

    private static final int MAX_DEPTH = 100;

    private final String exchange;
    private final String routingKey;
    private final Object body;
    private final Map<String, Object> properties = new LinkedHashMap<>();
    private final Map<String, Object> headers = new LinkedHashMap<>();

    private NewMessage(String exchange, String routingKey, Object body) {
        this.exchange = exchange;
        this.routingKey = routingKey;
        this.body = body;
    }

    /** {@return a message to an exchange} The exchange {@code ""} is the default exchange. */
    public static NewMessage of(String exchange, String routingKey, String body) {
        return new NewMessage(exchange, routingKey, body);
    }

    /** {@return a message to an exchange, whose body is bytes} */
    public static NewMessage of(String exchange, String routingKey, byte[] body) {
        return new NewMessage(exchange, routingKey, body);
    }

    /** Sets the content type. */
    public NewMessage contentType(String value) {
        return set("content_type", value);
    }

    /** Sets the content encoding. */
    public NewMessage contentEncoding(String value) {
        return set("content_encoding", value);
    }

    /** Sets the correlation id. */
    public NewMessage correlationId(String value) {
        return set("correlation_id", value);
    }

    /** Sets where an answer goes. */
    public NewMessage replyTo(String value) {
        return set("reply_to", value);
    }

    /** Sets the message id. */
    public NewMessage messageId(String value) {
        return set("message_id", value);
    }

    /** Sets the type. */
    public NewMessage type(String value) {
        return set("type", value);
    }

    /** Sets the id of the application. */
    public NewMessage appId(String value) {
        return set("app_id", value);
    }

    /** Sets how long after its delivery it expires, in whole milliseconds. */
    public NewMessage expiration(Duration time) {
        return set("expiration", time);
    }

    /** Sets whether it is persistent, 2, or not, 1; the default is 2. */
    public NewMessage deliveryMode(int mode) {
        return set("delivery_mode", mode);
    }

    /** Sets its priority, 0 to 255. */
    public NewMessage priority(int value) {
        return set("priority", value);
    }

    /** Sets its time, in whole seconds. */
    public NewMessage timestamp(Instant time) {
        return set("timestamp", time);
    }

    /**
     * Adds a header: a text, a number, a boolean, null, or a list or map of them. JSON has no bytes,
     * decimals or times, and they are refused.
     */
    public NewMessage header(String name, Object value) {
        headers.put(name, value);
        return this;
    }

    private NewMessage set(String name, Object value) {
        properties.put(name, value);
        return this;
    }

    /**
     * {@return the job that delivers it} Use it to set options of the job, such as its jid or tags:
     * {@code client.enqueueIn(delay, message.job().tags("web"))}. Its queue cannot be changed.
     * Throws InvalidException if the message breaks a rule.
     */
    public NewJob job() {
        try {
            return NewJob.withArgs(CLASS, List.of(encoded())).queue(QUEUE);
        } catch (IllegalArgumentException e) {
            throw new InvalidException("message to " + exchange + ": " + e.getMessage(), e);
        }
    }

    private Map<String, Object> encoded() {
        Map<String, Object> encoded = new LinkedHashMap<>();
        encoded.put("exchange", text("exchange", exchange));
        encoded.put("routing_key", text("routing key", routingKey));
        body(encoded);
        Map<String, Object> all = new LinkedHashMap<>();
        properties.forEach((name, value) -> all.put(name, property(name, value)));
        if (!headers.isEmpty()) {
            all.put("headers", table(headers, 0));
        }
        if (!all.isEmpty()) {
            encoded.put("properties", all);
        }
        return encoded;
    }

    private void body(Map<String, Object> encoded) {
        if (body instanceof byte[] bytes) {
            try {
                encoded.put("body", Json.text(bytes));
            } catch (CharacterCodingException e) {
                encoded.put("body_base64", Base64.getEncoder().encodeToString(bytes));
            }
        } else if (body instanceof String text) {
            Wire.checkUnicode("the body", text);
            encoded.put("body", text);
        } else {
            throw new IllegalArgumentException("the body is null");
        }
    }

    private static Object property(String name, Object value) {
        if (value instanceof Duration time) {
            check(!time.isNegative(), name + " is negative");
            return Long.toString(time.toMillis());
        }
        if (value instanceof Instant time) {
            check(time.getEpochSecond() >= 0, name + " is before 1970");
            return time.getEpochSecond();
        }
        if (value instanceof Integer number) {
            int least = name.equals("priority") ? 0 : 1;
            int most = name.equals("priority") ? 255 : 2;
            check(number >= least && number <= most, name + " must be from " + least + " to " + most);
            return number;
        }
        return text(name, value);
    }

    /** Returns a text that is an AMQP short string. */
    private static String text(String name, Object value) {
        check(value instanceof String, name + " is null");
        String text = (String) value;
        Wire.checkUnicode(name, text);
        check(text.getBytes(StandardCharsets.UTF_8).length <= Wire.MAX_PROPERTY, name + " is longer than " + Wire.MAX_PROPERTY + " bytes");
        return text;
    }

    private static Map<String, Object> table(Map<?, ?> map, int depth) {
        Map<String, Object> table = new LinkedHashMap<>();
        map.forEach((name, value) -> {
            check(name instanceof String, "the name of a header is no text: " + name);
            table.put(text("the name of a header", name), header(value, depth + 1));
        });
        return table;
    }

    /** Returns the value of a header, if JSON has exactly this value. */
    private static Object header(Object value, int depth) {
        check(depth <= MAX_DEPTH, "headers are nested deeper than " + MAX_DEPTH);
        if (value instanceof Map<?, ?> map) {
            return table(map, depth);
        }
        if (value instanceof List<?> list) {
            List<Object> items = new ArrayList<>();
            list.forEach(item -> items.add(header(item, depth + 1)));
            return items;
        }
        check(!(value instanceof BigInteger number) || number.bitLength() < Long.SIZE, "a header has an integer that needs more than 64 bits");
        boolean plain = value == null || value instanceof String || value instanceof Boolean || value instanceof Byte || value instanceof Short
                || value instanceof Integer || value instanceof Long || value instanceof BigInteger || value instanceof Float
                || value instanceof Double;
        if (!plain) {
            throw new IllegalArgumentException("a header has a " + value.getClass().getTypeName() + ", which JSON does not have");
        }
        return value;
    }

    private static void check(boolean ok, String otherwise) {
        if (!ok) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}
