package io.github.millracejobs;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Queue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.LockSupport;

/**
 * The threads of a lane. One at most is being woken at any time, and wakes the next if there is more to do; meanwhile whoever has ended a job
 * takes another. So jobs that take long are begun at once, and quick ones cost few changes of thread.
 */
final class Crew {
    private final int size;
    private final ThreadFactory factory;
    private final Queue<Runnable> work = new ArrayDeque<>(); // from here on: under the lock of this
    private final Deque<Member> idle = new ArrayDeque<>(); // the one that was so last comes first: its memory is still at hand
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

    /** Lets the threads end: those that are idle now, and the others when they are. */
    void close() {
        Deque<Member> all;
        synchronized (this) {
            closed = true;
            all = new ArrayDeque<>(idle);
            idle.clear();
        }
        all.forEach(this::call);
    }

    /** Chooses who is to be woken, if anybody has to be. The caller holds the lock. */
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
                Thread.interrupted(); // nobody who means it interrupts a thread that has no job
            }
        }

        private void perform(Runnable task) {
            try {
                task.run();
            } catch (Throwable e) { // a task sees to its own faults: this is for those of its seeing to them
                thread.getUncaughtExceptionHandler().uncaughtException(thread, e);
            }
        }
    }
}
