package io.github.millracejobs;

import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/** A lane at work. It outlives connections: a job whose delivery is lost keeps its thread until it ends. */
final class Pool {
    final Lane lane;

    private final Crew threads; // or null: then the program's executor runs the tasks
    private final Executor executor;
    private int busy; // these two: under the lock of this, which is also that of the attachment
    private Attachment attachment;

    Pool(Lane lane, Executor executor) {
        this.lane = lane;
        // Daemons: a handler that never ends must not keep the process.
        threads = executor == null ? new Crew(lane.concurrency, Waits.daemons("millrace " + lane.name)) : null;
        this.executor = executor == null ? threads::execute : outside(executor);
    }

    /** Refuses an executor that runs a task in the thread that calls it: jobs would run where deliveries come from. */
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
     * How much the broker may send of each queue: as much as can run; twice that where queues are chosen from, else the next job of the first
     * would still be on its way when a thread is free, and another's would be taken.
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

    /** Tells the lane that something else is to be done. */
    synchronized void changed() {
        if (attachment != null) {
            attachment.changed();
        }
    }

    /** Gives a task to a thread. The caller holds the lock, and has seen that there is one. */
    void begin(Runnable task) {
        busy++;
        try {
            executor.execute(task);
        } catch (RejectedExecutionException e) { // by the program's executor
            busy--;
            throw e;
        }
    }

    /** Frees the thread of a task that has ended and is settled. */
    synchronized void release() {
        busy--;
        if (attachment != null) {
            attachment.begin();
        }
    }

    /** Lets the threads end that are idle, and the others when they are. */
    void close() {
        if (threads != null) {
            threads.close();
        }
    }
}
