package io.github.millracejobs;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A queue of which limits count all jobs, also plain jobs of other programs: {@code
 * GovernedQueue.of("imports").key("args.0.customer_id").maxWaiting(100_000)}.
 */
public final class GovernedQueue {
    private static final long MOST_WAITING = 1_000_000_000;
    private static final long MOST_AHEAD = 1_000_000;
    private static final long MOST_WEIGHT = 1000;
    private static final int MOST_WEIGHTS = 10_000;
    private static final int MOST_KEY = 200;

    private final String name;
    private final Map<String, Object> members = new LinkedHashMap<>();
    private final Map<String, Long> weights = new LinkedHashMap<>();

    private GovernedQueue(String name) {
        this.name = name;
    }

    /** {@return a queue to govern, by its name} */
    public static GovernedQueue of(String name) {
        return new GovernedQueue(name);
    }

    /** {@return its name} */
    public String name() {
        return name;
    }

    /**
     * Sets the path to the key of a job, such as {@code args.0.customer_id} or {@code class}. Keys
     * take turns.
     */
    public GovernedQueue key(String path) {
        return set("key", path);
    }

    /** Sets how many jobs may wait. More are refused, with {@link RefusedException}. */
    public GovernedQueue maxWaiting(long jobs) {
        return set("max_waiting", jobs);
    }

    /** Sets how many turns a key has in a round; the default is 1. */
    public GovernedQueue weight(String key, long turns) {
        weights.put(key, turns);
        return set("weights", weights);
    }

    /**
     * Sets how many jobs of the queue are delivered and have not ended at most. The default is
     * twice as many as its workers run at once.
     */
    public GovernedQueue ahead(long jobs) {
        return set("ahead", jobs);
    }

    /** Pauses it: no job of the queue is delivered. */
    public GovernedQueue paused() {
        return set("paused", true);
    }

    private GovernedQueue set(String member, Object value) {
        members.put(member, value);
        return this;
    }

    /**
     * {@return its definition} It is for test helpers. Throws InvalidException if it breaks a rule.
     */
    public Map<String, Object> definition() {
        try {
            check();
        } catch (IllegalArgumentException e) {
            throw new InvalidException("governed queue " + name + ": " + e.getMessage(), e);
        }
        Map<String, Object> definition = new LinkedHashMap<>();
        definition.put("name", name);
        definition.putAll(members);
        return definition;
    }

    private void check() {
        Wire.checkQueue(name);
        if (members.get("key") instanceof String path && !isPath(path)) {
            throw new IllegalArgumentException("key must be a path into the job, such as args.0.customer_id, of at most " + MOST_KEY + " bytes");
        }
        checkNumber("maxWaiting", members.get("max_waiting"), MOST_WAITING);
        checkNumber("ahead", members.get("ahead"), MOST_AHEAD);
        if (weights.size() > MOST_WEIGHTS) {
            throw new IllegalArgumentException("there are " + weights.size() + " weights, at most " + MOST_WEIGHTS + " are allowed");
        }
        weights.forEach((key, turns) -> checkNumber("the weight of key " + key, turns, MOST_WEIGHT));
    }

    private static boolean isPath(String key) {
        return Arrays.stream(key.split("\\.", -1)).noneMatch(String::isEmpty) && key.getBytes(StandardCharsets.UTF_8).length <= MOST_KEY;
    }

    private static void checkNumber(String what, Object number, long most) {
        if (number instanceof Long given && (given < 1 || given > most)) {
            throw new IllegalArgumentException(what + " must be a number from 1 to " + most);
        }
    }
}
