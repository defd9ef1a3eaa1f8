package io.github.millracejobs;

import java.lang.reflect.Type;

/**
 * Writes values as JSON, and reads them back as the type that a handler wants. A client asks it about arguments that are not plain: texts,
 * numbers, booleans, null, and lists, arrays and maps of them. A worker asks it about everything that a handler wants as a type.
 */
public interface Codec {
    /** {@return a value as JSON text} IllegalArgumentException: it has no form in JSON. */
    String encode(Object value);

    /** {@return the value of a JSON text, as a type} IllegalArgumentException: the text does not fit the type. */
    Object decode(String json, Type type);

    /**
     * {@return the codec that is used if nothing is said} It knows texts, numbers, booleans, enums, records, {@code UUID}, {@code URI},
     * {@code Optional}, the classes of {@code java.time} that have an ISO form, and lists, sets, arrays and maps of all of them. Members of a
     * JSON object that a record does not have are ignored; components that the object does not have are null, or empty if they are
     * {@code Optional}.
     */
    static Codec standard() {
        return StandardCodec.INSTANCE;
    }
}
