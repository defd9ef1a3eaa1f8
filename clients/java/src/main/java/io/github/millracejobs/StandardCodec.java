package io.github.millracejobs;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;

/** The codec that needs only jackson-core. */
final class StandardCodec implements Codec {
    static final StandardCodec INSTANCE = new StandardCodec();

    private static final int MAX_DIGITS = 1_000; // the maximum that an exponent may add to a number

    /** Types whose JSON is the text of their toString. */
    private static final Map<Class<?>, Function<String, ?>> TEXTS = Map.ofEntries(
            Map.entry(UUID.class, StandardCodec::uuid),
            Map.entry(URI.class, URI::create),
            Map.entry(Instant.class, Instant::parse),
            Map.entry(Duration.class, Duration::parse),
            Map.entry(LocalDate.class, LocalDate::parse),
            Map.entry(LocalTime.class, LocalTime::parse),
            Map.entry(LocalDateTime.class, LocalDateTime::parse),
            Map.entry(OffsetDateTime.class, OffsetDateTime::parse),
            Map.entry(ZonedDateTime.class, ZonedDateTime::parse));

    private static final Map<Class<?>, Class<?>> BOXES = Map.of(int.class, Integer.class, long.class, Long.class, short.class, Short.class,
            byte.class, Byte.class, double.class, Double.class, float.class, Float.class, boolean.class, Boolean.class, char.class, Character.class);

    private StandardCodec() {}

    /** A value that does not fit. The path grows from the innermost part outwards. */
    private static final class Misfit extends IllegalArgumentException {
        private static final long serialVersionUID = 1;

        private final String path;
        private final String text;

        Misfit(String path, String text, Throwable cause) {
            super(path.isEmpty() ? text : path.substring(path.startsWith(".") ? 1 : 0) + ": " + text, cause);
            this.path = path;
            this.text = text;
        }

        Misfit in(String outer) {
            return new Misfit(outer + path, text, getCause());
        }
    }

    @Override
    public String encode(Object value) {
        return new String(Json.write(value, this), StandardCharsets.UTF_8);
    }

    /** Writes a value that is not plain. */
    void write(JsonGenerator out, Object value) throws IOException {
        if (value instanceof Record) {
            record(out, (Record) value);
        } else if (value instanceof Enum<?> constant) {
            out.writeString(constant.name());
        } else if (value instanceof Optional<?> optional) {
            Json.write(out, optional.orElse(null), this);
        } else if (value instanceof Character letter) {
            Json.write(out, letter.toString(), this);
        } else if (TEXTS.containsKey(value.getClass())) {
            Json.write(out, value.toString(), this);
        } else {
            throw new IllegalArgumentException("a " + value.getClass().getName() + " has no form in JSON: make it a record, or use a Codec that knows it");
        }
    }

    private void record(JsonGenerator out, Record value) throws IOException {
        out.writeStartObject();
        for (RecordComponent component : value.getClass().getRecordComponents()) {
            out.writeFieldName(component.getName());
            Json.write(out, get(component, value), this);
        }
        out.writeEndObject();
    }

    private static Object get(RecordComponent component, Record value) {
        try {
            component.getAccessor().setAccessible(true); // also of a record that is not public
            return component.getAccessor().invoke(value);
        } catch (InvocationTargetException e) {
            throw new IllegalArgumentException(component.getName() + " of " + value.getClass().getName() + " cannot be read: " + e.getCause(), e.getCause());
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new IllegalArgumentException(component.getName() + " of " + value.getClass().getName() + " cannot be read: " + e.getMessage(), e);
        }
    }

    @Override
    public Object decode(String json, Type type) {
        try (JsonParser in = Json.parser(json)) {
            in.nextToken();
            return read(in, type);
        } catch (IOException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /** Reads the value at the current token as a type. */
    private Object read(JsonParser in, Type type) throws IOException {
        if (type instanceof Class<?> plain) {
            return readClass(in, plain);
        }
        if (type instanceof ParameterizedType generic) {
            return readGeneric(in, generic);
        }
        if (type instanceof WildcardType wildcard) {
            return read(in, wildcard.getUpperBounds()[0]);
        }
        if (type instanceof GenericArrayType array) {
            return toArray(in, array.getGenericComponentType());
        }
        if (type instanceof TypeVariable<?> variable) {
            return read(in, variable.getBounds()[0]);
        }
        throw new IllegalArgumentException("the type " + type.getTypeName() + " cannot be read");
    }

    private Object readGeneric(JsonParser in, ParameterizedType type) throws IOException {
        Class<?> raw = (Class<?>) type.getRawType();
        Type[] of = type.getActualTypeArguments();
        if (raw == Optional.class) {
            return Optional.ofNullable(read(in, of[0]));
        }
        if (in.currentToken() == JsonToken.VALUE_NULL) {
            return null;
        }
        if (isList(raw)) {
            return readList(in, of[0]);
        }
        if (raw == Set.class) {
            return new LinkedHashSet<>(readList(in, of[0]));
        }
        if (raw == Map.class) {
            return readMap(in, of[0], of[1]);
        }
        throw new Misfit("", "the type " + type.getTypeName() + " cannot be read: use a Codec that knows it", null);
    }

    private static boolean isList(Class<?> type) {
        return type == List.class || type == Collection.class || type == Iterable.class;
    }

    private Object readClass(JsonParser in, Class<?> given) throws IOException {
        Class<?> type = BOXES.getOrDefault(given, given);
        JsonToken token = in.currentToken();
        if (type == Optional.class) {
            return Optional.ofNullable(Json.value(in));
        }
        if (token == JsonToken.VALUE_NULL) {
            if (given.isPrimitive()) {
                throw misfit(in, given);
            }
            return null;
        }
        if (type == Object.class) {
            return Json.value(in);
        }
        if (Number.class.isAssignableFrom(type)) {
            return number(in, given, type);
        }
        if (type == Boolean.class && token.isBoolean()) {
            return in.getBooleanValue();
        }
        if (token == JsonToken.VALUE_STRING && isText(type)) {
            return text(in, type);
        }
        if (type == Instant.class && token.isNumeric()) {
            return instant(in);
        }
        if (isList(type)) {
            return readList(in, Object.class);
        }
        if (type == Set.class) {
            return new LinkedHashSet<>(readList(in, Object.class));
        }
        if (type == Map.class) {
            return readMap(in, String.class, Object.class);
        }
        if (type.isArray()) {
            return toArray(in, type.getComponentType());
        }
        if (type.isRecord()) {
            return readRecord(in, type);
        }
        if (type == Boolean.class || isText(type)) {
            throw misfit(in, given);
        }
        throw new Misfit("", "the type " + type.getName() + " cannot be read: make it a record, or use a Codec that knows it", null);
    }

    private static boolean isText(Class<?> type) {
        return type == String.class || type == CharSequence.class || type == Character.class || type.isEnum() || TEXTS.containsKey(type);
    }

    private static Object text(JsonParser in, Class<?> type) throws IOException {
        String text = in.getText();
        if (type == String.class || type == CharSequence.class) {
            return text;
        }
        if (type == Character.class) {
            if (text.length() != 1) {
                throw misfit(in, char.class);
            }
            return text.charAt(0);
        }
        if (type.isEnum()) {
            for (Object constant : type.getEnumConstants()) {
                if (((Enum<?>) constant).name().equals(text)) {
                    return constant;
                }
            }
            throw new Misfit("", found(in) + ", which is none of " + Arrays.stream(type.getEnumConstants()).map(c -> ((Enum<?>) c).name()).toList(), null);
        }
        try {
            return TEXTS.get(type).apply(text);
        } catch (DateTimeException | IllegalArgumentException e) {
            throw new Misfit("", wanted(in, type), e);
        }
    }

    private static UUID uuid(String text) {
        UUID uuid = UUID.fromString(text); // which also accepts "1-1-1-1-1"
        if (!uuid.toString().equalsIgnoreCase(text)) {
            throw new IllegalArgumentException("it is no UUID");
        }
        return uuid;
    }

    /** Seconds since the epoch, as the times of jobs are written. */
    private static Instant instant(JsonParser in) throws IOException {
        BigDecimal exact = in.getDecimalValue();
        if (isFar(exact) || Math.abs(exact.doubleValue()) > 1e11) {
            throw misfit(in, Instant.class);
        }
        BigInteger whole = exact.toBigInteger();
        return Instant.ofEpochSecond(whole.longValueExact(), exact.subtract(new BigDecimal(whole)).movePointRight(9).longValue());
    }

    private static Object number(JsonParser in, Class<?> given, Class<?> type) throws IOException {
        if (!in.currentToken().isNumeric()) {
            throw misfit(in, given);
        }
        if (type == Number.class) {
            return Json.value(in);
        }
        try {
            if (type == BigDecimal.class) {
                return in.getDecimalValue();
            }
            if (type == Double.class || type == Float.class) {
                double value = in.getDoubleValue();
                Object fit = type == Double.class ? (Object) value : (Object) (float) value;
                if (Double.isInfinite(((Number) fit).doubleValue())) {
                    throw misfit(in, given);
                }
                return fit;
            }
            BigInteger whole = whole(in);
            if (type == BigInteger.class) {
                return whole;
            }
            if (type == Long.class) {
                return whole.longValueExact();
            }
            if (type == Integer.class) {
                return whole.intValueExact();
            }
            if (type == Short.class) {
                return whole.shortValueExact();
            }
            if (type == Byte.class) {
                return whole.byteValueExact();
            }
        } catch (ArithmeticException | NumberFormatException e) {
            throw new Misfit("", wanted(in, given), null);
        }
        throw new Misfit("", "the type " + type.getName() + " cannot be read", null);
    }

    /**
     * Returns a whole number, also one that is written as 5.0 or 1e3. Throws ArithmeticException if
     * it has a fraction, or very many digits.
     */
    private static BigInteger whole(JsonParser in) throws IOException {
        if (in.currentToken() == JsonToken.VALUE_NUMBER_INT) {
            return in.getBigIntegerValue();
        }
        BigDecimal value = in.getDecimalValue();
        if (isFar(value)) {
            throw new ArithmeticException("too many digits");
        }
        return value.toBigIntegerExact();
    }

    /** Returns whether the exponent of a number is so large that writing it out would take long. */
    private static boolean isFar(BigDecimal value) {
        return Math.abs((long) value.scale()) > MAX_DIGITS;
    }

    private List<Object> readList(JsonParser in, Type of) throws IOException {
        if (in.currentToken() != JsonToken.START_ARRAY) {
            throw misfit(in, List.class);
        }
        List<Object> list = new ArrayList<>();
        while (in.nextToken() != JsonToken.END_ARRAY) {
            try {
                list.add(read(in, of));
            } catch (Misfit e) {
                throw e.in("[" + list.size() + "]");
            }
        }
        return list;
    }

    private Object toArray(JsonParser in, Type of) throws IOException {
        List<Object> list = readList(in, of);
        Object array = Array.newInstance(raw(of), list.size());
        for (int i = 0; i < list.size(); i++) {
            Array.set(array, i, list.get(i));
        }
        return array;
    }

    private static Class<?> raw(Type type) {
        if (type instanceof Class<?> plain) {
            return plain;
        }
        if (type instanceof ParameterizedType generic) {
            return (Class<?>) generic.getRawType();
        }
        if (type instanceof GenericArrayType array) {
            return raw(array.getGenericComponentType()).arrayType();
        }
        return type instanceof TypeVariable<?> variable ? raw(variable.getBounds()[0]) : Object.class;
    }

    private Map<Object, Object> readMap(JsonParser in, Type keys, Type values) throws IOException {
        if (in.currentToken() != JsonToken.START_OBJECT) {
            throw misfit(in, Map.class);
        }
        Map<Object, Object> map = new LinkedHashMap<>();
        while (in.nextToken() == JsonToken.FIELD_NAME) {
            String name = in.currentName();
            try {
                Object key = keys == String.class || raw(keys) == Object.class ? name : decode(encode(name), keys);
                in.nextToken();
                map.put(key, read(in, values));
            } catch (Misfit e) {
                throw e.in("." + name);
            }
        }
        return map;
    }

    private Object readRecord(JsonParser in, Class<?> type) throws IOException {
        if (in.currentToken() != JsonToken.START_OBJECT) {
            throw misfit(in, type);
        }
        RecordComponent[] components = type.getRecordComponents();
        Object[] values = new Object[components.length];
        boolean[] present = new boolean[components.length];
        while (in.nextToken() == JsonToken.FIELD_NAME) {
            String name = in.currentName();
            in.nextToken();
            int index = indexOf(components, name);
            if (index < 0) {
                in.skipChildren();
                continue;
            }
            try {
                values[index] = read(in, components[index].getGenericType());
                present[index] = true;
            } catch (Misfit e) {
                throw e.in("." + name);
            }
        }
        for (int i = 0; i < components.length; i++) {
            if (present[i]) {
                continue;
            }
            if (components[i].getType().isPrimitive()) {
                throw new Misfit("." + components[i].getName(), "it is missing", null);
            }
            values[i] = components[i].getType() == Optional.class ? Optional.empty() : null;
        }
        return make(type, components, values);
    }

    private static int indexOf(RecordComponent[] components, String name) {
        for (int i = 0; i < components.length; i++) {
            if (components[i].getName().equals(name)) {
                return i;
            }
        }
        return -1;
    }

    private static Object make(Class<?> type, RecordComponent[] components, Object[] values) {
        try {
            Constructor<?> constructor = type.getDeclaredConstructor(
                    Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new));
            constructor.setAccessible(true); // also of a record that is not public
            return constructor.newInstance(values);
        } catch (InvocationTargetException e) {
            throw new Misfit("", type.getSimpleName() + " refuses it: " + e.getCause().getMessage(), e.getCause());
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new Misfit("", type.getName() + " cannot be made: " + e.getMessage(), e);
        }
    }

    private static Misfit misfit(JsonParser in, Class<?> wanted) throws IOException {
        return new Misfit("", wanted(in, wanted), null);
    }

    private static String wanted(JsonParser in, Class<?> type) throws IOException {
        return found(in) + ", not " + (type == List.class ? "a list" : type == Map.class ? "a map" : type.getSimpleName());
    }

    /** Returns the text at this position, shortened. */
    private static String found(JsonParser in) throws IOException {
        return switch (in.currentToken()) {
            case START_OBJECT -> "it is an object";
            case START_ARRAY -> "it is an array";
            case VALUE_STRING -> "it is the text \"" + shortened(in.getText()) + "\"";
            case VALUE_NULL -> "it is null";
            default -> "it is " + shortened(in.getText());
        };
    }

    private static String shortened(String text) {
        return text.length() <= 60 ? text : text.substring(0, text.offsetByCodePoints(0, Math.min(60, text.codePointCount(0, text.length())))) + "…";
    }
}
