package io.github.millracejobs;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Queue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.LockSupport;

/**
 * The threads of a lane. At most one thread is being woken at any time. It wakes the next one if
 * there is more work. Meanwhile, threads that end a job take another one. So long jobs begin
 * immediately, and quick jobs cost few thread switches.
 */
final class Crew {
    private final int size;
    private final ThreadFactory factory;
    // Guarded by this, like the following fields.
    private final Queue<Runnable> work = new ArrayDeque<>();
    // The thread that became idle last is first, because its memory is still in the cache.
    private final Deque<Member> idle = new ArrayDeque<>();
    private int members;
    private boolean waking;
    private boolean closed;

    Crew(int size, ThreadFactory factory) {
        this.size = size;
        this.factory = factory;
    }

    void execute(Runnable task) {
        Member next;
        synchronized (this) {
            work.add(task);
            next = wake();
        }
        call(next);
    }

    /** Ends idle threads now, and busy threads when their jobs end. */
    void close() {
        Deque<Member> all;
        synchronized (this) {
            closed = true;
            all = new ArrayDeque<>(idle);
            idle.clear();
        }
        all.forEach(this::call);
    }

    /** Returns the thread to wake, or null. The caller holds the lock. */
    private Member wake() {
        if (waking || work.isEmpty() || idle.isEmpty() && members == size) {
            return null;
        }
        waking = true;
        if (idle.isEmpty()) {
            members++;
            return new Member();
        }
        return idle.pop();
    }

    private void call(Member member) {
        if (member == null) {
            return;
        }
        member.called = true;
        if (member.thread != null) {
            LockSupport.unpark(member.thread);
            return;
        }
        try {
            member.thread = factory.newThread(member);
            member.thread.start();
        } catch (OutOfMemoryError e) { // the system has no thread to give; the next job tries again
            synchronized (this) {
                members--;
                waking = false;
            }
            throw e;
        }
    }

    private final class Member implements Runnable {
        private volatile boolean called;
        private volatile Thread thread;

        @Override
        public void run() {
            while (true) {
                Runnable task;
                Member next;
                synchronized (Crew.this) {
                    if (called) {
                        called = false;
                        waking = false;
                    }
                    task = work.poll();
                    next = wake();
                    if (task == null && closed) {
                        return;
                    }
                    if (task == null) {
                        idle.push(this);
                    }
                }
                call(next);
                if (task == null) {
                    sleep();
                } else {
                    perform(task);
                }
            }
        }

        private void sleep() {
            while (!called) {
                LockSupport.park(Crew.this);
                Thread.interrupted(); // an interrupt has no meaning for a thread without a job
            }
        }

        private void perform(Runnable task) {
            try {
                task.run();
            } catch (Throwable e) {
                // A task handles its own errors; this error came from that handling.
                thread.getUncaughtExceptionHandler().uncaughtException(thread, e);
            }
        }
    }
}
