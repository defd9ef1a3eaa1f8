package io.github.millracejobs.testing;

import io.github.millracejobs.Decision;
import io.github.millracejobs.Job;
import io.github.millracejobs.Unique;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Predicate;

/** The keys of unique jobs. Nothing is put off in a test. */
final class Keys {
    private final Map<String, Taken> taken = new HashMap<>();

    /** The job that has a key. A job that is over has it until a time. */
    private record Taken(String jid, long until, boolean over) {
        boolean holds() {
            return !over || System.nanoTime() < until;
        }
    }

    /**
     * Gives a job its key, or returns which job has it. {@code replace} removes a job that waits, by
     * its jid, and returns whether it did.
     */
    Decision decide(Job job, Unique unique, Predicate<String> replace) {
        if (unique == null) {
            return new Decision(job.jid(), false);
        }
        String key = unique.keyOf(job);
        Taken holder = taken.get(key);
        if (holder != null && holder.holds() && !(unique.isReplacing() && replace.test(holder.jid()))) {
            return new Decision(holder.jid(), true);
        }
        taken.put(key, new Taken(job.jid(), System.nanoTime() + unique.atLeast().toNanos(), false));
        return new Decision(job.jid(), false);
    }

    /** Frees the key of a job that has it only while it waits. */
    void begins(Job job, Unique unique) {
        if (unique != null && unique.isWhileWaiting()) {
            ends(job, unique);
        }
    }

    /** Frees the key of a job, if it does not have it for a longer time. */
    void ends(Job job, Unique unique) {
        if (unique != null) {
            taken.computeIfPresent(unique.keyOf(job), (key, of) -> of.jid().equals(job.jid()) ? new Taken(of.jid(), of.until(), true) : of);
        }
    }

    void clear() {
        taken.clear();
    }
}
