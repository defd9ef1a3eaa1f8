package io.github.millracejobs;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Which jobs count as the same, and what becomes of a job when there is one of them already: {@code
 * NewJob.of("Charge", 42).unique(Unique.key("order-42").forAtLeast(Duration.ofDays(1)))}.
 *
 * <p>By default, the key of a job is taken until the job has ended, also while it waits for a retry,
 * and the first job stays. Others are duplicates, which do not run.
 */
public final class Unique {
    private static final Set<String> PARTS = Set.of("class", "queue", "args", "jid");
    private static final int MOST_PARTS = 16;
    private static final Duration LONGEST = Duration.ofDays(366);

    private final Map<String, Object> members = new LinkedHashMap<>();
    private final Map<String, Duration> times = new LinkedHashMap<>();

    private Unique() {}

    /** {@return that jobs with the same class, queue and args are the same} */
    public static Unique of() {
        return new Unique();
    }

    /** {@return that a text of 1 to 200 bytes names the job} */
    public static Unique key(String key) {
        return new Unique().with("key", key);
    }

    /**
     * {@return that parts of the job name it} A part is {@code class}, {@code queue}, {@code args},
     * {@code jid}, or a path such as {@code args.0} and {@code args.0.customer}.
     */
    public static Unique by(String... parts) {
        return new Unique().with("by", List.of(parts));
    }

    private Unique with(String member, Object value) {
        members.put(member, value);
        return this;
    }

    private Unique with(String member, Duration time) {
        times.put(member, time);
        return with(member, Json.seconds(time));
    }

    /** Frees the key when a worker can take the job, and not only when the job has ended. */
    public Unique whileWaiting() {
        return with("while", "waiting");
    }

    /** Keeps the key taken for some time in any case, from when the job was enqueued. */
    public Unique forAtLeast(Duration time) {
        return with("for", time);
    }

    /** Lets the later job stay, if the first still waits. */
    public Unique replace() {
        return with("on", "replace");
    }

    /** Puts the job off, again with each duplicate. */
    public Unique putOff(Duration time) {
        return with("wait", time);
    }

    /** Sets for how long the job is put off in all. It needs {@link #putOff}. */
    public Unique putOffAtMost(Duration time) {
        return with("max", time);
    }

    /** {@return whether the key is free when a worker can take the job} It is for test helpers. */
    public boolean isWhileWaiting() {
        return "waiting".equals(members.get("while"));
    }

    /** {@return whether the later job stays} It is for test helpers. */
    public boolean isReplacing() {
        return "replace".equals(members.get("on"));
    }

    /** {@return how long the key is taken in any case} It is for test helpers. */
    public Duration atLeast() {
        return times.getOrDefault("for", Duration.ZERO);
    }

    /** {@return the key of a job, as a text} It is for test helpers. */
    public String keyOf(Job job) {
        if (members.get("key") instanceof String key) {
            return "key:" + key;
        }
        List<?> by = members.get("by") instanceof List<?> parts ? parts : List.of("class", "queue", "args");
        Map<String, Object> whole = Map.of("class", job.className(), "queue", job.queue(), "jid", job.jid(), "args", job.args());
        Map<Object, Object> found = new TreeMap<>();
        by.forEach(part -> found.put(part, ordered(at(whole, (String) part))));
        return "by:" + found;
    }

    /** Returns the value at a path, in a list of its own, or an empty list if there is none. */
    private static Object at(Object value, String path) {
        for (String step : path.split("\\.")) {
            if (value instanceof Map<?, ?> map && map.containsKey(step)) {
                value = map.get(step);
            } else if (value instanceof List<?> list && step.matches("\\d{1,9}") && Integer.parseInt(step) < list.size()) {
                value = list.get(Integer.parseInt(step));
            } else {
                return List.of();
            }
        }
        return Arrays.asList(value);
    }

    /** Returns a value with the members of all maps in order, and texts in quotes. */
    private static Object ordered(Object value) {
        if (value instanceof Map<?, ?> map) {
            Map<Object, Object> sorted = new TreeMap<>();
            map.forEach((name, member) -> sorted.put(name, ordered(member)));
            return sorted;
        }
        if (value instanceof List<?> list) {
            List<Object> items = new ArrayList<>();
            list.forEach(item -> items.add(ordered(item)));
            return items;
        }
        return value instanceof String text ? new String(Json.write(text), StandardCharsets.UTF_8) : value;
    }

    /** Returns the member of a job. Throws IllegalArgumentException if it breaks a rule. */
    Map<String, Object> member() {
        if (members.containsKey("key")) {
            checkKey((String) members.get("key"));
        }
        if (members.get("by") instanceof List<?> parts) {
            checkParts(parts);
        }
        for (String name : new TreeSet<>(times.keySet())) {
            Duration time = times.get(name);
            if (time.isNegative() || time.isZero() || time.compareTo(LONGEST) > 0) {
                throw new IllegalArgumentException("unique: " + name + " must be above 0, and at most 366 days");
            }
        }
        if (times.containsKey("max") && !times.containsKey("wait")) {
            throw new IllegalArgumentException("unique: putOffAtMost needs putOff");
        }
        return members;
    }

    private static void checkKey(String key) {
        if (key == null || key.isEmpty()) {
            throw new IllegalArgumentException("key of unique is empty");
        }
        Wire.checkName("key of unique", key);
    }

    private static void checkParts(List<?> parts) {
        if (parts.isEmpty() || parts.size() > MOST_PARTS) {
            throw new IllegalArgumentException("unique has " + parts.size() + " parts, 1 to " + MOST_PARTS + " are allowed");
        }
        for (Object part : parts) {
            if (!PARTS.contains(part) && !isPath((String) part)) {
                throw new IllegalArgumentException(
                        "unique: " + part + " is no part of a job: use class, queue, args, jid, or a path such as args.0.customer");
            }
        }
    }

    private static boolean isPath(String part) {
        return part.matches("args(\\.[^.]+)+") && part.getBytes(StandardCharsets.UTF_8).length <= Wire.MAX_NAME;
    }
}
