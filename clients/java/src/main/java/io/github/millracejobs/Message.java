package io.github.millracejobs;

import java.util.Map;

/**
 * A message to publish, and where to publish it. {@code messageId}, {@code type} and {@code
 * headers} may be null.
 */
record Message(String exchange, String key, byte[] body, String messageId, String type, int priority, Map<String, Object> headers) {
    /** Returns a record of a stream. */
    static Message record(String stream, byte[] body) {
        return new Message("", stream, body, null, null, 0, null);
    }
}
