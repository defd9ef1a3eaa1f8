package io.github.millracejobs;

import java.util.ArrayList;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.IntPredicate;

/** A lane's waiting deliveries, by queue. It is guarded by the lane's lock. */
final class Hand {
    private final List<LinkedList<Arrival>> waiting = new ArrayList<>();
    private final List<Integer> weights;

    Hand(Lane lane) {
        lane.queues.forEach(queue -> waiting.add(new LinkedList<>()));
        weights = lane.weights;
    }

    /** Adds an arrival behind all of the same or a higher priority. */
    void put(int queue, Arrival arrival) {
        ListIterator<Arrival> at = waiting.get(queue).listIterator(waiting.get(queue).size());
        while (at.hasPrevious()) {
            if (at.previous().priority() >= arrival.priority()) {
                at.next();
                break;
            }
        }
        at.add(arrival);
    }

    /** Puts back an arrival that was taken. */
    void putFirst(int queue, Arrival arrival) {
        waiting.get(queue).addFirst(arrival);
    }

    /**
     * Returns the queue from which the next delivery begins: the first queue that has one and may
     * begin it, or a queue that is drawn by weight. Returns -1 if there is none.
     */
    int next(IntPredicate may) {
        int total = 0;
        for (int queue = 0; queue < waiting.size(); queue++) {
            if (!waiting.get(queue).isEmpty() && may.test(queue)) {
                if (weights == null) {
                    return queue;
                }
                total += weights.get(queue);
            }
        }
        int drawn = total == 0 ? 0 : ThreadLocalRandom.current().nextInt(total);
        for (int queue = 0; total > 0 && queue < waiting.size(); queue++) {
            if (!waiting.get(queue).isEmpty() && may.test(queue)) {
                drawn -= weights.get(queue);
                if (drawn < 0) {
                    return queue;
                }
            }
        }
        return -1;
    }

    Arrival take(int queue) {
        return waiting.get(queue).removeFirst();
    }

    /** Removes and returns all deliveries of a queue. */
    List<Arrival> empty(int queue) {
        List<Arrival> all = new ArrayList<>(waiting.get(queue));
        waiting.get(queue).clear();
        return all;
    }

    boolean isEmpty() {
        return waiting.stream().allMatch(List::isEmpty);
    }

    /** Returns how long the oldest delivery of a queue has waited, in nanoseconds. */
    long waited(int queue, long now) {
        return waiting.get(queue).stream().mapToLong(arrival -> now - arrival.at()).max().orElse(0);
    }
}
