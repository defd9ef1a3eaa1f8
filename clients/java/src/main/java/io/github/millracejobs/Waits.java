package io.github.millracejobs;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** Waiting, always for some time at most; and threads that do not keep the process. */
final class Waits {
    private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
    static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);

    private Waits() {}

    /** Waits for one of some events, and tells whether there was one. An interrupt is remembered, and ends the waiting. */
    static boolean firstOf(Duration most, CompletableFuture<?>... events) {
        CompletableFuture<?> any = events.length == 1 ? events[0] : CompletableFuture.anyOf(events);
        try {
            any.get(most.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            return false;
        } catch (ExecutionException e) {
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return any.isDone();
        }
        return true;
    }

    /** Pauses between attempts: doubled each time, and not the same for everybody. */
    static final class Pauses {
        private Duration next = FIRST_PAUSE;

        /** The next pause. */
        Duration next() {
            Duration now = next;
            next = next.multipliedBy(2).compareTo(LONGEST_PAUSE) > 0 ? LONGEST_PAUSE : next.multipliedBy(2);
            return Duration.ofNanos((long) (now.toNanos() * ThreadLocalRandom.current().nextDouble(0.5, 1)));
        }
    }

    static ThreadFactory daemons(String name) {
        AtomicInteger count = new AtomicInteger();
        return work -> {
            Thread thread = new Thread(work, name + (count.incrementAndGet() == 1 ? "" : " " + count));
            thread.setDaemon(true);
            return thread;
        };
    }

    static Thread start(String name, Runnable work) {
        Thread thread = daemons(name).newThread(work);
        thread.start();
        return thread;
    }
}
