package io.github.millracejobs;

import java.util.Map;

/** What is published, and where; {@code messageId}, {@code type} and {@code headers} may be null. */
record Message(String exchange, String key, byte[] body, String messageId, String type, int priority, Map<String, Object> headers) {
    /** A record of a stream. */
    static Message record(String stream, byte[] body) {
        return new Message("", stream, body, null, null, 0, null);
    }
}
