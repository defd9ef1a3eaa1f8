package io.github.millracejobs;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.StreamWriteConstraints;
import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** JSON as lists, maps, texts, numbers, booleans and null. */
final class Json {
    /** How deep a job may be nested: one level less than an entry, which contains the job. */
    static final int MAX_DEPTH = 9_997;

    private static final JsonFactory FACTORY = JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNestingDepth(MAX_DEPTH)
                    .maxNumberLength(Integer.MAX_VALUE)
                    .maxStringLength(Integer.MAX_VALUE)
                    .maxNameLength(Integer.MAX_VALUE)
                    .build())
            .streamWriteConstraints(StreamWriteConstraints.builder().maxNestingDepth(MAX_DEPTH).build())
            .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
            // The default parser takes quadratic time.
            .enable(StreamReadFeature.USE_FAST_BIG_NUMBER_PARSER)
            // The names come from other programs, so there may be any number of them.
            .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
            .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
            .build();

    private Json() {}

    /** Writes part of a text. */
    interface Writing {
        void write(JsonGenerator out) throws IOException;
    }

    /** Decodes UTF-8. Throws CharacterCodingException if it is not UTF-8. */
    static String text(byte[] raw) throws CharacterCodingException {
        String text = new String(raw, StandardCharsets.UTF_8);
        if (text.indexOf('\uFFFD') >= 0) { // part of the text, or the replacement of invalid bytes
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(raw));
        }
        return text;
    }

    static JsonParser parser(String text) throws IOException {
        // For a text, the parser does not have to detect the encoding, as it would for bytes.
        return FACTORY.createParser(text.toCharArray());
    }

    /** Reads a whole text. Throws IOException if it is not JSON, or nested too deep. */
    static Object read(byte[] raw) throws IOException {
        try (JsonParser in = parser(text(raw))) {
            if (in.nextToken() == null) {
                throw new IOException("it is empty");
            }
            Object value = value(in);
            end(in);
            return value;
        }
    }

    static void end(JsonParser in) throws IOException {
        if (in.nextToken() != null) {
            throw new IOException("something stands behind it");
        }
    }

    /** Reads an object, or returns null if it is something else. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> object(byte[] raw) {
        try {
            return read(raw) instanceof Map<?, ?> map ? (Map<String, Object>) map : null;
        } catch (IOException e) {
            return null;
        }
    }

    /**
     * Reads the value that begins at the current token. It uses no recursion, because deep nesting
     * must not overflow the thread's stack.
     */
    static Object value(JsonParser in) throws IOException {
        Deque<Open> open = new ArrayDeque<>();
        JsonToken token = in.currentToken();
        while (true) {
            Object value;
            if (token.isStructStart()) {
                open.push(new Open(token == JsonToken.START_ARRAY));
                value = null;
            } else {
                value = token.isStructEnd() ? open.pop().value() : scalar(in, token);
                if (open.isEmpty()) {
                    return value;
                }
                open.peek().add(value);
            }
            token = in.nextToken();
            if (token == JsonToken.FIELD_NAME) {
                open.peek().name = in.currentName();
                token = in.nextToken();
            }
        }
    }

    /** A list or map that is being read. */
    private static final class Open {
        private final List<Object> list;
        private final Map<String, Object> map;
        private String name;

        Open(boolean isList) {
            list = isList ? new ArrayList<>() : null;
            map = isList ? null : new LinkedHashMap<>();
        }

        void add(Object value) {
            if (list != null) {
                list.add(value);
            } else {
                map.put(name, value);
            }
        }

        Object value() {
            return list != null ? list : map;
        }
    }

    private static Object scalar(JsonParser in, JsonToken token) throws IOException {
        return switch (token) {
            case VALUE_NULL -> null;
            case VALUE_TRUE -> Boolean.TRUE;
            case VALUE_FALSE -> Boolean.FALSE;
            case VALUE_STRING -> in.getText();
            case VALUE_NUMBER_INT -> in.getNumberType() == JsonParser.NumberType.BIG_INTEGER
                    ? in.getBigIntegerValue() : (Object) in.getLongValue();
            case VALUE_NUMBER_FLOAT -> fraction(in);
            default -> throw new IOException("unexpected " + token);
        };
    }

    /** Returns a Double, or a BigDecimal where a Double would be infinite. */
    private static Object fraction(JsonParser in) throws IOException {
        double value = in.getDoubleValue();
        if (!Double.isInfinite(value)) {
            return value;
        }
        try {
            return in.getDecimalValue();
        } catch (IOException | ArithmeticException | NumberFormatException e) {
            // The exponent is too large even for a BigDecimal.
            return value;
        }
    }

    /** Writes a value. Throws IllegalArgumentException if JSON cannot have it. */
    static byte[] write(Object value) {
        return write(value, Codec.standard());
    }

    /**
     * Writes a value, with a codec for values that are not plain. Throws IllegalArgumentException
     * if JSON cannot have it.
     */
    static byte[] write(Object value, Codec codec) {
        return write(out -> write(out, value, codec));
    }

    /** Writes a text. */
    static byte[] write(Writing writing) {
        StringWriter text = new StringWriter(256);
        try (JsonGenerator out = FACTORY.createGenerator(text)) {
            writing.write(out);
        } catch (IOException | StackOverflowError e) {
            throw new IllegalArgumentException(e instanceof IOException ? e.getMessage() : "it is nested too deep", e);
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    static void write(JsonGenerator out, Object value, Codec codec) throws IOException {
        if (value == null) {
            out.writeNull();
        } else if (value instanceof CharSequence text) {
            Wire.checkUnicode("a text", text.toString());
            out.writeString(text.toString());
        } else if (value instanceof Boolean flag) {
            out.writeBoolean(flag);
        } else if (value instanceof Number number) {
            number(out, number);
        } else if (value instanceof Map<?, ?> map) {
            object(out, map, codec);
        } else if (value instanceof Iterable<?> items) {
            out.writeStartArray();
            for (Object item : items) {
                write(out, item, codec);
            }
            out.writeEndArray();
        } else if (value.getClass().isArray()) {
            out.writeStartArray();
            for (int i = 0; i < Array.getLength(value); i++) {
                write(out, Array.get(value, i), codec);
            }
            out.writeEndArray();
        } else if (codec instanceof StandardCodec standard) {
            standard.write(out, value);
        } else {
            encoded(out, codec.encode(value));
        }
    }

    /**
     * Writes the JSON of a codec unchanged. It is checked first, because a worker would reject a
     * job that is not JSON.
     */
    private static void encoded(JsonGenerator out, String text) throws IOException {
        if (text == null) {
            throw new IllegalArgumentException("the codec gave no text");
        }
        Wire.checkUnicode("the codec's text", text);
        int outer = out.getOutputContext().getNestingDepth();
        try (JsonParser in = parser(text)) {
            if (in.nextToken() == null) {
                throw new IllegalArgumentException("the codec's text is empty");
            }
            int open = 0;
            for (JsonToken token = in.currentToken(); ; token = in.nextToken()) {
                open += token.isStructStart() ? 1 : token.isStructEnd() ? -1 : 0;
                if (outer + open > MAX_DEPTH) {
                    throw new IllegalArgumentException("it is nested too deep");
                }
                if (open == 0) {
                    break;
                }
            }
            end(in);
        }
        out.writeRawValue(text);
    }

    private static void object(JsonGenerator out, Map<?, ?> map, Codec codec) throws IOException {
        out.writeStartObject();
        for (Map.Entry<?, ?> member : map.entrySet()) {
            String name = key(member.getKey());
            Wire.checkUnicode("a map's key", name);
            out.writeFieldName(name);
            write(out, member.getValue(), codec);
        }
        out.writeEndObject();
    }

    private static String key(Object key) {
        if (key instanceof CharSequence || key instanceof UUID) {
            return key.toString();
        }
        if (key instanceof Enum<?> constant) {
            return constant.name();
        }
        throw new IllegalArgumentException("a map's key is no text: " + key);
    }

    private static void number(JsonGenerator out, Number number) throws IOException {
        if (number instanceof Integer || number instanceof Long || number instanceof Short || number instanceof Byte) {
            out.writeNumber(number.longValue());
        } else if (number instanceof BigInteger integer) {
            out.writeNumber(integer);
        } else if (number instanceof BigDecimal decimal) {
            out.writeNumber(decimal);
        } else if (number instanceof Double || number instanceof Float) {
            if (!Double.isFinite(number.doubleValue())) {
                throw new IllegalArgumentException(number + " has no form in JSON");
            }
            out.writeNumber(number.toString());
        } else {
            throw new IllegalArgumentException("a " + number.getClass().getName() + " has no form in JSON");
        }
    }

    /** Returns a duration in seconds, as a whole number if it is one. */
    static Object seconds(Duration time) {
        BigDecimal exact = BigDecimal.valueOf(time.getSeconds()).add(BigDecimal.valueOf(time.getNano(), 9));
        return time.getNano() == 0 ? (Object) time.getSeconds() : (Object) exact.stripTrailingZeros();
    }

    /** Returns a time rounded to the microsecond. */
    static BigDecimal time(double seconds) {
        return Math.abs(seconds) < 1e12 ? BigDecimal.valueOf(Math.round(seconds * 1e6), 6) : BigDecimal.valueOf(seconds);
    }
}
