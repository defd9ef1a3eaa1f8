package io.github.millracejobs;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;

/** Names and rules of the wire format: see docs/wire-format.md. */
final class Wire {
    static final String DIRECT = "jobs.direct";
    static final String CONTROL = "jobs.control";
    static final String BEGINS = "jobs.begins";
    static final String GATED = "jobs.gated";
    static final String ENDS = "jobs.ends";
    static final String LEADER = "jobs.leader";
    static final String SCHEDULED = "scheduled_jobs";
    static final String RETRIES = "retries";
    static final String DEAD = "dead_jobs";
    static final String HEARTBEATS = "heartbeats";
    static final String METRICS = "job_metrics";

    static final String QUEUE_PREFIX = "queue.";
    static final String DEFAULT_QUEUE = "default";
    static final int DEFAULT_RETRY = 25;
    static final int MAX_PRIORITY = 10;
    static final int MAX_RECORD = 16 << 20;
    static final int MAX_NAME = 200;
    static final long MAX_COUNT = 1L << 31;
    /** The length in bytes of the longest AMQP short string. */
    static final int MAX_PROPERTY = 255;
    static final String TRACEPARENT = "traceparent";

    /** The members of a job that the format names. */
    static final Set<String> JOB_MEMBERS = Set.of(
            "jid", "class", "args", "queue", "retry", "retry_count", "priority", "tags", "expires_at", "timeout", "dead", "backtrace",
            "enqueued_at", "created_at", "failed_at", "error_class", "error_message", "millrace", "gate");

    private static final double MAX_SECONDS = 1e11;

    private Wire() {}

    /** Throws IllegalArgumentException if this cannot be the name of a queue. */
    static void checkQueue(String name) {
        if (name == null || name.isEmpty()) {
            throw new IllegalArgumentException("queue name is empty");
        }
        checkName("queue name", name);
    }

    /** Throws IllegalArgumentException if this cannot be a name, or the key of a limited job. */
    static void checkName(String what, String name) {
        checkUnicode(what, name);
        if (name.getBytes(StandardCharsets.UTF_8).length > MAX_NAME) {
            throw new IllegalArgumentException(what + " is longer than " + MAX_NAME + " bytes");
        }
        if (name.chars().anyMatch(Character::isISOControl)) {
            throw new IllegalArgumentException(what + " has a control character");
        }
    }

    static void checkUnicode(String what, String text) {
        if (!isUnicode(text)) {
            throw new IllegalArgumentException(what + " has a lone surrogate");
        }
    }

    static boolean isUnicode(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (!Character.isSurrogate(c)) {
                continue;
            }
            if (!Character.isHighSurrogate(c) || i + 1 == text.length() || !Character.isLowSurrogate(text.charAt(i + 1))) {
                return false;
            }
            i++;
        }
        return true;
    }

    /** Returns a text in which everything that is not Unicode is replaced. */
    static String valid(String text) {
        if (isUnicode(text)) {
            return text;
        }
        StringBuilder out = new StringBuilder(text.length());
        text.codePoints().forEach(c -> out.appendCodePoint(c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE ? 0xFFFD : c));
        return out.toString();
    }

    /** Returns a text for a message's property, or null if the property cannot have it. */
    static String property(String text) {
        if (text == null || text.isEmpty() || text.equals("amqp-1.0") || !isUnicode(text)) {
            return null;
        }
        return text.getBytes(StandardCharsets.UTF_8).length <= MAX_PROPERTY ? text : null;
    }

    /** Returns the headers that pass a trace context on, or null. */
    static Map<String, Object> traceHeaders(String traceparent) {
        if (traceparent == null || traceparent.isEmpty() || traceparent.length() > MAX_PROPERTY) {
            return null;
        }
        return traceparent.chars().allMatch(c -> c >= 0x20 && c <= 0x7e) ? Map.of(TRACEPARENT, traceparent) : null;
    }

    /**
     * Returns a time of the format in seconds, or null. A number too large for seconds is read as
     * milliseconds.
     */
    static Double clock(Object value) {
        if (!(value instanceof Number number)) {
            return null;
        }
        double seconds = number.doubleValue();
        if (Math.abs(seconds) > MAX_SECONDS) {
            seconds /= 1000;
        }
        return Math.abs(seconds) <= MAX_SECONDS ? Double.valueOf(seconds) : null;
    }

    /** Returns the time in seconds since the epoch. */
    static double now() {
        java.time.Instant now = java.time.Instant.now();
        return now.getEpochSecond() + now.getNano() / 1e9;
    }
}
