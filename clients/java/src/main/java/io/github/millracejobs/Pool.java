package io.github.millracejobs;

import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/**
 * A lane's threads. It outlives connections: a job whose delivery is lost keeps its thread until it
 * ends.
 */
final class Pool {
    final Lane lane;

    private final Crew threads; // null: the program's executor runs the tasks
    private final Executor executor;
    // Guarded by this, like the next field. The attachment uses the same lock.
    private int busy;
    private Attachment attachment;

    Pool(Lane lane, Executor executor) {
        this.lane = lane;
        // Daemons, because a handler that never ends must not keep the process alive.
        threads = executor == null ? new Crew(lane.concurrency, Waits.daemons("millrace " + lane.name)) : null;
        this.executor = executor == null ? threads::execute : outside(executor);
    }

    /**
     * Refuses an executor that runs a task in the calling thread: jobs would run in the delivery
     * thread.
     */
    private Executor outside(Executor other) {
        return task -> {
            Thread caller = Thread.currentThread();
            other.execute(() -> {
                if (Thread.currentThread() == caller && Thread.holdsLock(this)) {
                    throw new RejectedExecutionException("the executor runs tasks in the thread that calls it");
                }
                task.run();
            });
        };
    }

    /**
     * Returns how many unacknowledged deliveries the broker sends for each queue. For one queue it
     * is the concurrency. For several queues it is twice that. Otherwise, when a thread is free,
     * the next job of the first queue would still be on its way, and a job of another queue would
     * begin.
     */
    int prefetch() {
        return lane.queues.size() == 1 ? lane.concurrency : 2 * lane.concurrency;
    }

    synchronized int busy() {
        return busy;
    }

    synchronized boolean isIdle() {
        return busy < lane.concurrency;
    }

    synchronized void attach(Attachment to) {
        attachment = to;
    }

    /** Makes the lane react to a change. */
    synchronized void changed() {
        if (attachment != null) {
            attachment.changed();
        }
    }

    /**
     * Gives a task to a thread. The caller holds the lock, and has checked that a thread is free.
     */
    void begin(Runnable task) {
        busy++;
        try {
            executor.execute(task);
        } catch (RejectedExecutionException e) { // by the program's executor
            busy--;
            throw e;
        }
    }

    /** Frees the thread of a task that is settled. */
    synchronized void release() {
        busy--;
        if (attachment != null) {
            attachment.begin();
        }
    }

    /** Ends idle threads now, and busy threads when their jobs end. */
    void close() {
        if (threads != null) {
            threads.close();
        }
    }
}
