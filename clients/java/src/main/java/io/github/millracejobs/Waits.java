package io.github.millracejobs;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** Limited waits, and threads that do not keep the process alive. */
final class Waits {
    private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
    static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);

    private Waits() {}

    /**
     * Waits for the first of some events, and returns whether one came. An interrupt ends the wait,
     * and stays set.
     */
    static boolean firstOf(Duration most, CompletableFuture<?>... events) {
        CompletableFuture<?>[] all = Arrays.copyOf(events, events.length + 1);
        CompletableFuture<Void> over = new CompletableFuture<>();
        all[events.length] = over;
        CompletableFuture<?> any = CompletableFuture.anyOf(all);
        try {
            any.get(most.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            return false;
        } catch (ExecutionException e) {
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return any.isDone();
        } finally {
            // Removes this wait from the events, some of which live as long as the worker.
            over.complete(null);
        }
        return true;
    }

    /**
     * The pauses between attempts. Each is twice the one before, with a random factor, so that
     * clients do not try at the same time.
     */
    static final class Pauses {
        private final Duration longest;
        private Duration next = FIRST_PAUSE;

        Pauses() {
            this(LONGEST_PAUSE);
        }

        Pauses(Duration longest) {
            this.longest = longest;
        }

        /** Returns the next pause. */
        Duration next() {
            Duration now = next;
            next = next.multipliedBy(2).compareTo(longest) > 0 ? longest : next.multipliedBy(2);
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

    /**
     * Returns an executor with one thread, which ends when it has been idle for a while. So the
     * executor needs no shutdown. A call that failed, for example for lack of memory, may have lost
     * a delivery; then {@code fault} runs.
     */
    static ExecutorService callbacks(String name, Runnable fault) {
        ThreadPoolExecutor one = new ThreadPoolExecutor(1, 1, 5, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), daemons(name)) {
            @Override
            protected void afterExecute(Runnable call, Throwable error) {
                if (error != null) {
                    fault.run();
                }
            }
        };
        one.allowCoreThreadTimeOut(true);
        return one;
    }

    static Thread start(String name, Runnable work) {
        Thread thread = daemons(name).newThread(work);
        thread.start();
        return thread;
    }
}
