package io.github.millracejobs;

import java.lang.reflect.Type;

/**
 * Writes values as JSON, and reads them as the type that a handler asks for. A client uses it for
 * arguments that are not plain. Plain are texts, numbers, booleans, null, and lists, arrays and
 * maps of them. A worker uses it for everything that a handler asks for as a type.
 */
public interface Codec {
    /**
     * {@return a value as JSON text} Throws IllegalArgumentException if the value has no form in
     * JSON.
     */
    String encode(Object value);

    /**
     * {@return the value of a JSON text, as a type} Throws IllegalArgumentException if the text
     * does not fit the type.
     */
    Object decode(String json, Type type);

    /**
     * {@return the default codec} It knows texts, numbers, booleans, enums, records, {@code UUID},
     * {@code URI}, {@code Optional}, the classes of {@code java.time} that have an ISO form, and
     * lists, sets, arrays and maps of all of them. It ignores members of a JSON object that a
     * record does not have. Components that the object does not have are null, or empty if they are
     * {@code Optional}.
     */
    static Codec standard() {
        return StandardCodec.INSTANCE;
    }
}
