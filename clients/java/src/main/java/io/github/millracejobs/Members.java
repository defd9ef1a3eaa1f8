package io.github.millracejobs;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The members of a job that the format names, parsed and checked, and the positions of bytes to
 * change.
 */
final class Members {
    private static final int USUAL_LINES = 20;
    private static final int ALL_LINES = 100;
    private static final double LONGEST_TIMEOUT = 1e9;

    private final String text;
    private final Map<String, Object> values = new HashMap<>();
    private boolean empty = true;
    private boolean hasQueue;
    private int nullQueue = -1; // where the value begins that the queue's name must replace
    private int argsBegin = -1;
    private int argsEnd;

    private String className;
    private String jid;
    private long retry;
    private long retryCount;
    private int priority;
    private List<String> tags;
    private Double expiresAt;

    private Members(String text) {
        this.text = text;
    }

    static Members read(byte[] raw) throws Unreadable {
        try {
            Members members = new Members(Json.text(raw));
            members.scan();
            members.check();
            return members;
        } catch (IOException e) {
            throw new Unreadable("it is no JSON: " + e.getMessage(), e);
        } catch (IllegalArgumentException e) {
            throw new Unreadable(e.getMessage(), e);
        }
    }

    private void scan() throws IOException, Unreadable {
        try (JsonParser in = Json.parser(text)) {
            if (in.nextToken() != JsonToken.START_OBJECT) {
                throw new Unreadable("it is no JSON object");
            }
            boolean escapes = text.indexOf('\\') >= 0;
            while (in.nextToken() == JsonToken.FIELD_NAME) {
                empty = false;
                String name = in.currentName();
                if (!Wire.JOB_MEMBERS.contains(name)) {
                    in.nextToken();
                    in.skipChildren();
                    continue;
                }
                if (escapes && !text.startsWith(name + "\"", offset(in) + 1)) {
                    throw new Unreadable(name + " is written with escapes");
                }
                in.nextToken();
                member(name, in);
            }
            Json.end(in);
        }
    }

    private void member(String name, JsonParser in) throws IOException, Unreadable {
        if (values.containsKey(name)) {
            throw new Unreadable(name + " stands there twice");
        }
        int begin = name.equals("queue") || name.equals("args") ? offset(in) : -1;
        Object value = Json.value(in);
        values.put(name, value);
        if (name.equals("queue")) {
            hasQueue = true;
            nullQueue = value == null ? begin : -1;
        } else if (name.equals("args") && value != null) {
            argsBegin = begin;
            argsEnd = (int) in.currentLocation().getCharOffset();
        }
    }

    private static int offset(JsonParser in) {
        return (int) in.currentTokenLocation().getCharOffset();
    }

    private void check() throws Unreadable {
        className = text("class");
        if (className.isEmpty()) {
            throw new Unreadable("it has no class");
        }
        jid = text("jid");
        if (values.get("queue") != null) {
            Wire.checkQueue(text("queue"));
        }
        Object again = values.get("retry");
        retry = again == null || Boolean.TRUE.equals(again) ? Wire.DEFAULT_RETRY : Boolean.FALSE.equals(again) ? 0 : count("retry", Wire.MAX_COUNT);
        retryCount = count("retry_count", Wire.MAX_COUNT);
        priority = (int) count("priority", Wire.MAX_PRIORITY);
        tags = readTags();
        if (values.get("dead") != null && !(values.get("dead") instanceof Boolean)) {
            throw new Unreadable("dead is not true or false");
        }
        expiresAt = Wire.clock(values.get("expires_at"));
        if (values.get("expires_at") != null && expiresAt == null) {
            throw new Unreadable("expires_at is no time");
        }
    }

    private String text(String name) throws Unreadable {
        Object value = values.get(name);
        if (value == null) {
            return "";
        }
        if (!(value instanceof String found)) {
            throw new Unreadable(name + " is no text");
        }
        Wire.checkUnicode(name, found);
        return found;
    }

    private long count(String name, long most) throws Unreadable {
        Object value = values.get(name);
        if (value == null) {
            return 0;
        }
        double number = value instanceof Number n ? n.doubleValue() : -1;
        if (!(number >= 0 && number <= most && number == Math.rint(number))) {
            throw new Unreadable(name + " must be a whole number from 0 to " + most);
        }
        return (long) number;
    }

    private List<String> readTags() throws Unreadable {
        Object value = values.get("tags");
        if (value == null) {
            return List.of();
        }
        if (!(value instanceof List<?> list) || !list.stream().allMatch(String.class::isInstance)) {
            throw new Unreadable("tags is no array of texts");
        }
        return list.stream().map(String.class::cast).toList();
    }

    String className() {
        return className;
    }

    String jid() {
        return jid;
    }

    long retry() {
        return retry;
    }

    long retryCount() {
        return retryCount;
    }

    int priority() {
        return priority;
    }

    List<String> tags() {
        return tags;
    }

    Double expiresAt() {
        return expiresAt;
    }

    /** Returns whether limits count it. */
    boolean limited() {
        return values.get("gate") instanceof Map<?, ?>;
    }

    /** Returns the key that limits count it under, or null. */
    String limitKey() {
        return values.get("gate") instanceof Map<?, ?> gate && gate.get("key") instanceof String key ? key : null;
    }

    Object args() {
        Object args = values.get("args");
        return args == null ? List.of() : args;
    }

    String argsJson() {
        return argsBegin < 0 ? "[]" : text.substring(argsBegin, argsEnd);
    }

    /**
     * Returns the JSON of one of the args, unchanged. Returns null if there are not as many, or
     * args is no array.
     */
    String argJson(int index) {
        if (argsBegin < 0 || index < 0) {
            return null;
        }
        try (JsonParser in = Json.parser(argsJson())) {
            if (in.nextToken() != JsonToken.START_ARRAY) {
                return null;
            }
            for (int at = 0; in.nextToken() != JsonToken.END_ARRAY; at++) {
                int begin = offset(in);
                in.skipChildren();
                if (at == index) {
                    in.finishToken();
                    return argsJson().substring(begin, (int) in.currentLocation().getCharOffset());
                }
            }
            return null;
        } catch (IOException e) {
            throw new IllegalStateException("args were read before", e);
        }
    }

    /**
     * Returns the members that the format does not name, with their unchanged JSON. If a name
     * occurs twice, the last one counts.
     */
    Map<String, String> fields() {
        Map<String, String> fields = new LinkedHashMap<>();
        try (JsonParser in = Json.parser(text)) {
            in.nextToken();
            while (in.nextToken() == JsonToken.FIELD_NAME) {
                String name = in.currentName();
                in.nextToken();
                int begin = offset(in);
                in.skipChildren();
                if (!Wire.JOB_MEMBERS.contains(name)) {
                    in.finishToken();
                    fields.put(name, text.substring(begin, (int) in.currentLocation().getCharOffset()));
                }
            }
        } catch (IOException e) {
            throw new IllegalStateException("the job was read before", e);
        }
        return fields;
    }

    /** Returns whether it becomes a dead job when it is given up. */
    boolean dead() {
        return !Boolean.FALSE.equals(values.get("dead"));
    }

    /** Returns whether it was enqueued for a later time. */
    boolean scheduled() {
        return values.containsKey("created_at");
    }

    Double enqueuedAt() {
        return Wire.clock(values.get("enqueued_at"));
    }

    /**
     * Returns how many seconds it may run, or null. Only workers use it, so an invalid value is
     * ignored.
     */
    Double timeout() {
        double seconds = values.get("timeout") instanceof Number n ? n.doubleValue() : 0;
        return seconds > 0 && seconds < LONGEST_TIMEOUT ? Double.valueOf(seconds) : null;
    }

    /**
     * Returns how many lines of a backtrace are kept. Only workers use it, so an invalid value is
     * ignored.
     */
    int backtrace() {
        Object value = values.get("backtrace");
        if (value instanceof Boolean all) {
            return all ? ALL_LINES : 0;
        }
        return value instanceof Number n ? (int) Math.max(0, Math.min(n.doubleValue(), ALL_LINES)) : USUAL_LINES;
    }

    /**
     * Returns the job's bytes with the queue that it came from, if it names none. Otherwise it
     * would be retried in the default queue.
     */
    byte[] comesBackTo(String queue, byte[] raw) {
        if (hasQueue && nullQueue < 0) {
            return raw;
        }
        String name = new String(Json.write(queue), StandardCharsets.UTF_8);
        String renamed;
        if (hasQueue) {
            renamed = text.substring(0, nullQueue) + name + text.substring(nullQueue + "null".length());
        } else {
            int close = text.lastIndexOf('}');
            renamed = text.substring(0, close) + (empty ? "" : ",") + "\"queue\":" + name + text.substring(close);
        }
        return renamed.getBytes(StandardCharsets.UTF_8);
    }
}
