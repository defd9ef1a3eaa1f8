package io.github.millracejobs;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/**
 * How many limited jobs run at once, and how many begin in a time. It has a {@link
 * #concurrency(long)}, a {@link #rate} or both: {@code
 * Limit.of("imports").queues("imports").per(Limit.Per.KEY).concurrency(3)}.
 */
public final class Limit {
    private final String name;
    private final Map<String, Object> members = new LinkedHashMap<>();
    private final Map<String, Map<String, Object>> overrides = new LinkedHashMap<>();

    /** What has a limit of its own. */
    public enum Per {
        /** Each queue. */
        QUEUE,
        /** Each class. */
        CLASS,
        /** Each key. */
        KEY
    }

    /**
     * How many jobs may begin in a time. They begin evenly spread over it.
     *
     * @param jobs how many
     * @param time in which they may begin
     * @param burst how many may begin at once after a pause
     */
    public record Rate(long jobs, Duration time, long burst) {
        /** {@return a rate without bursts} */
        public static Rate of(long jobs, Duration time) {
            return new Rate(jobs, time, 1);
        }

        private Map<String, Object> members() {
            Map<String, Object> members = new LinkedHashMap<>();
            members.put("jobs", jobs);
            members.put("seconds", Json.seconds(time));
            members.put("burst", burst);
            return members;
        }
    }

    private Limit(String name) {
        this.name = name;
    }

    /**
     * {@return a limit with a name, of 1 to 64 letters, digits, dots, hyphens and underscores} It
     * is about all limited jobs, unless it names queues or classes.
     */
    public static Limit of(String name) {
        return new Limit(name);
    }

    /** {@return its name} */
    public String name() {
        return name;
    }

    /** Sets the queues of its jobs; the default is all. */
    public Limit queues(String... names) {
        return set("queues", List.of(names));
    }

    /** Sets the classes of its jobs; the default is all. */
    public Limit classes(String... names) {
        return set("classes", List.of(names));
    }

    /** Counts each queue, class or key on its own, or each combination of these. */
    public Limit per(Per... what) {
        return set("per", Stream.of(what).map(each -> each.name().toLowerCase(Locale.ROOT)).toList());
    }

    /** Sets how many jobs run at once. */
    public Limit concurrency(long jobs) {
        return set("concurrency", jobs);
    }

    /** Sets how many jobs begin in a time. */
    public Limit rate(Rate rate) {
        return set("rate", rate.members());
    }

    /** Sets how many jobs of one key run at once. */
    public Limit concurrency(String key, long jobs) {
        return override(key, "concurrency", jobs);
    }

    /** Sets how many jobs of one key begin in a time. */
    public Limit rate(String key, Rate rate) {
        return override(key, "rate", rate.members());
    }

    /** Pauses it. */
    public Limit paused() {
        return set("paused", true);
    }

    private Limit set(String member, Object value) {
        members.put(member, value);
        return this;
    }

    private Limit override(String key, String member, Object value) {
        overrides.computeIfAbsent(key, none -> new LinkedHashMap<>()).put(member, value);
        return set("overrides", overrides);
    }

    /** {@return its definition} It is for test helpers. The leader checks it. */
    public Map<String, Object> definition() {
        Map<String, Object> definition = new LinkedHashMap<>();
        definition.put("name", name);
        definition.putAll(members);
        return definition;
    }
}
