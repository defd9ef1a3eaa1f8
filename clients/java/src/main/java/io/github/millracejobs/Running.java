package io.github.millracejobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** The jobs that run now, including those whose delivery is lost. */
final class Running {
    // How long handlers have to end after their cancel signal was set.
    private static final Duration LAST_CALL = Duration.ofMillis(500);
    // How long outcomes in progress may take at the end.
    private static final Duration SETTLING = Duration.ofSeconds(2);

    private final Set<Task> tasks = new HashSet<>();
    private CompletableFuture<Void> idle; // while a thread waits for it

    synchronized void add(Task task) {
        tasks.add(task);
    }

    synchronized void remove(Task task) {
        tasks.remove(task);
        if (idle != null && tasks.isEmpty()) {
            idle.complete(null);
        }
    }

    synchronized List<Task> all() {
        return new ArrayList<>(tasks);
    }

    private synchronized CompletableFuture<Void> idle() {
        if (tasks.isEmpty()) {
            return CompletableFuture.completedFuture(null);
        }
        idle = new CompletableFuture<>();
        return idle;
    }

    void cancel(String jid) {
        for (Task task : all()) {
            Job job = task.job();
            if (job != null && job.jid().equals(jid)) {
                job.signalEnd(Job.End.CANCELLED);
            }
        }
    }

    void stopping() {
        for (Task task : all()) {
            if (task.job() != null) {
                task.job().signalStopping();
            }
        }
    }

    /**
     * Waits until the jobs have ended, at most for {@code time}. Then sets the cancel signal of
     * those that still run.
     */
    void await(Duration time, CompletableFuture<Void> hurry) {
        CompletableFuture<Void> none = idle();
        Waits.firstOf(time, none, hurry);
        if (none.isDone()) {
            return;
        }
        for (Task task : all()) {
            if (task.job() != null) {
                task.job().signalEnd(Job.End.STOPPING);
            }
        }
        Waits.firstOf(LAST_CALL, none);
    }

    /**
     * Requeues jobs that still run, and waits for outcomes in progress. It runs in a thread of its
     * own, because a broker that does not read would block it.
     */
    void handBack() {
        List<Task> left = all();
        CompletableFuture<?>[] settling = left.stream().map(task -> task.settled).toArray(CompletableFuture[]::new);
        Waits.start("millrace hands back", () -> left.forEach(Task::handBack));
        Waits.firstOf(SETTLING, CompletableFuture.allOf(settling));
    }
}
