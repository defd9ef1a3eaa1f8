package io.github.millracejobs;

import java.util.ArrayList;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.IntPredicate;

/** What a lane has at hand, by queue. It belongs to the lane's lock. */
final class Hand {
    private final List<LinkedList<Arrival>> waiting = new ArrayList<>();
    private final List<Integer> weights;

    Hand(Lane lane) {
        lane.queues.forEach(queue -> waiting.add(new LinkedList<>()));
        weights = lane.weights;
    }

    /** Adds an arrival behind those of its priority. */
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

    /** Puts an arrival back that was taken. */
    void putFirst(int queue, Arrival arrival) {
        waiting.get(queue).addFirst(arrival);
    }

    /** Chooses the queue of which something is to begin next: the first that has something and may, or one drawn by weight; -1: none. */
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

    /** Removes all of one queue. */
    List<Arrival> empty(int queue) {
        List<Arrival> all = new ArrayList<>(waiting.get(queue));
        waiting.get(queue).clear();
        return all;
    }

    boolean isEmpty() {
        return waiting.stream().allMatch(List::isEmpty);
    }

    /** How long the longest waiting of a queue does so, in nanoseconds. */
    long waited(int queue, long now) {
        return waiting.get(queue).stream().mapToLong(arrival -> now - arrival.at()).max().orElse(0);
    }
}
