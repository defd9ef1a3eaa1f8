package io.github.millracejobs;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The fold of the stream {@code jobs.begins}, from which workers find jobs that kill their workers.
 */
final class Begins {
    // How many seconds a dead process, or a job that never ended, is remembered.
    private static final double MEMORY = 72 * 3600;
    private static final int FORGET_EVERY = 1000;

    private final Map<String, Process> processes = new HashMap<>();
    private final Map<BeginKey, Suspect> suspects = new HashMap<>();
    private long records;

    /** A worker process, as the stream describes it. */
    private static final class Process {
        private final String queue; // its exclusive queue, which vanishes with its connection
        private final List<String> queues;
        private final long opened; // the number of its latest record "opened"
        private double heard;
        private Double died;
        private boolean closed;

        Process(String queue, List<String> queues, long opened, double heard) {
            this.queue = queue;
            this.queues = queues;
            this.opened = opened;
            this.heard = heard;
        }

        /** Returns whether the process died, or vanished without closing. */
        boolean isDead(Set<String> gone) {
            return !closed && (died != null || gone.contains(queue));
        }
    }

    /** A job that began after an earlier delivery. */
    private static final class Suspect {
        // In which it began, or may have begun.
        private final Set<String> processes = new HashSet<>();
        private double heard;
    }

    /** Folds one record, and returns it, or null if the body is not a record. */
    Map<String, Object> apply(byte[] body) {
        Map<String, Object> record = Json.object(body);
        if (record == null || !(record.get("process") instanceof String name)) {
            return null;
        }
        records++;
        Double clock = Wire.clock(record.get("at"));
        double at = clock == null ? 0 : clock;
        Process process = processes.get(name);
        switch (text(record.get("type"))) {
            case "opened" -> processes.put(name, new Process(text(record.get("queue")), texts(record.get("queues")), records, at));
            case "died" -> {
                if (process != null && process.died == null) {
                    process.died = at;
                    process.heard = at;
                }
            }
            case "closed" -> {
                if (process != null) {
                    process.closed = true;
                    process.heard = at;
                }
            }
            case "begun" -> begun(key(record), name, text(record.get("blames")), at);
            case "ended" -> suspects.remove(key(record));
            default -> { } // of a later version
        }
        if (records % FORGET_EVERY == 0) {
            forget(at - MEMORY);
        }
        return record;
    }

    static BeginKey key(Map<String, Object> record) {
        return new BeginKey(text(record.get("jid")), text(record.get("body")));
    }

    /** Notes that a job began. */
    void begun(BeginKey key, String process, String blames, double at) {
        Suspect suspect = suspects.computeIfAbsent(key, k -> new Suspect());
        suspect.heard = at;
        suspect.processes.add(process);
        if (!blames.isEmpty()) {
            suspect.processes.add(blames);
        }
    }

    private void forget(double before) {
        suspects.values().removeIf(suspect -> suspect.heard < before);
        processes.values().removeIf(process -> (process.closed || process.died != null) && process.heard < before);
    }

    /**
     * Returns the exclusive queues of the processes that count for a job and may be dead, by
     * process. If such a queue does not exist, its process is dead.
     */
    Map<String, String> maybeDead(BeginKey key, String queue, String own) {
        Suspect suspect = suspects.get(key);
        Map<String, String> found = new HashMap<>();
        processes.forEach((name, process) -> {
            boolean matters = suspect != null ? suspect.processes.contains(name) : process.queues.contains(queue);
            if (matters && !name.equals(own) && !process.closed && process.died == null) {
                found.put(name, process.queue);
            }
        });
        return found;
    }

    /**
     * Returns the process that is blamed for the earlier delivery of an unknown job, or "". It is
     * the process that opened last, of the dead ones that consumed the job's queue and did not die
     * before the job was enqueued.
     */
    String blame(BeginKey key, String queue, String own, Double enqueuedAt, Set<String> gone) {
        String blamed = "";
        long latest = 0;
        if (suspects.containsKey(key)) {
            return blamed;
        }
        for (Map.Entry<String, Process> entry : processes.entrySet()) {
            Process process = entry.getValue();
            boolean there = process.died == null || enqueuedAt == null || process.died >= enqueuedAt;
            if (there && process.isDead(gone) && process.queues.contains(queue) && !entry.getKey().equals(own) && process.opened > latest) {
                latest = process.opened;
                blamed = entry.getKey();
            }
        }
        return blamed;
    }

    /** Counts the dead processes in which a job began. */
    int deaths(BeginKey key, String own, Set<String> gone) {
        Suspect suspect = suspects.get(key);
        if (suspect == null) {
            return 0;
        }
        return (int) suspect.processes.stream()
                .filter(name -> !name.equals(own) && processes.containsKey(name) && processes.get(name).isDead(gone)).count();
    }

    private static String text(Object value) {
        return value instanceof String text ? text : "";
    }

    private static List<String> texts(Object value) {
        List<String> texts = new ArrayList<>();
        if (value instanceof List<?> list) {
            list.forEach(item -> texts.add(text(item)));
        }
        return texts;
    }
}
