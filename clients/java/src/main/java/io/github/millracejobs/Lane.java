package io.github.millracejobs;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A named pool of threads with its own queues, so that quick jobs never wait for slow ones. */
public final class Lane {
    static final int CONCURRENCY = 5;

    final String name;
    final List<String> queues;
    final List<Integer> weights; // as many as queues, or null
    final int concurrency;

    private Lane(String name, List<String> queues, List<Integer> weights, int concurrency) {
        this.name = name;
        this.queues = queues;
        this.weights = weights;
        this.concurrency = concurrency;
    }

    /** {@return a lane with strict queues: the first queue that has a job is served} */
    public static Lane strict(String name, String... queues) {
        return new Lane(name, List.of(queues), null, CONCURRENCY);
    }

    /** {@return a lane with weighted queues: each is served in proportion to its weight} */
    public static Lane weighted(String name, Map<String, Integer> queues) {
        Map<String, Integer> ordered = new LinkedHashMap<>(queues);
        return new Lane(name, new ArrayList<>(ordered.keySet()), new ArrayList<>(ordered.values()), CONCURRENCY);
    }

    /** {@return the same lane with a number of threads; the default is 5} */
    public Lane concurrency(int threads) {
        return new Lane(name, queues, weights, threads);
    }

    /** Throws IllegalArgumentException if a setting is invalid. */
    void check() {
        if (queues.isEmpty() || new HashSet<>(queues).size() != queues.size()) {
            throw new IllegalArgumentException("lane " + name + ": its queues must be different ones, and at least one");
        }
        queues.forEach(Wire::checkQueue);
        if (weights != null && !weights.stream().allMatch(weight -> weight >= 1)) {
            throw new IllegalArgumentException("lane " + name + ": weights must be 1 or more");
        }
        if (concurrency < 1) {
            throw new IllegalArgumentException("lane " + name + ": concurrency is " + concurrency);
        }
    }
}
