package io.github.millracejobs;

import java.time.Duration;
import java.util.EnumMap;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiConsumer;
import org.slf4j.Logger;

/**
 * The program's hooks. Failure hooks run in the thread of their job. All others run one after the
 * other in a thread of their own, so that no I/O waits for them.
 */
final class Hooks {
    // A hook that never ends must not block the worker.
    private static final Duration LONGEST = Duration.ofMinutes(10);

    private final Logger log;
    private final Map<Event, List<Runnable>> hooks = new EnumMap<>(Event.class);
    private final List<BiConsumer<Job, Throwable>> failures = new ArrayList<>();
    private final List<BiConsumer<Job, Throwable>> deaths = new ArrayList<>();
    private final ExecutorService thread = Executors.newSingleThreadExecutor(Waits.daemons("millrace hooks"));

    enum Event { STARTUP, QUIET, SHUTDOWN }

    Hooks(Logger log) {
        this.log = log;
    }

    void add(Event event, Runnable hook) {
        hooks.computeIfAbsent(event, e -> new ArrayList<>()).add(hook);
    }

    void addFailure(BiConsumer<Job, Throwable> hook) {
        failures.add(hook);
    }

    void addDeath(BiConsumer<Job, Throwable> hook) {
        deaths.add(hook);
    }

    void call(Event event) {
        for (Runnable hook : hooks.getOrDefault(event, List.of())) {
            submit(event.name().toLowerCase(java.util.Locale.ROOT), hook);
        }
    }

    /** Calls the failure hooks, in this thread. */
    void failed(Job job, Throwable error) {
        for (BiConsumer<Job, Throwable> hook : failures) {
            run("failure", () -> hook.accept(job, error));
        }
    }

    void died(Job job, Throwable error) {
        for (BiConsumer<Job, Throwable> hook : deaths) {
            submit("death", () -> hook.accept(job, error));
        }
    }

    private void run(String name, Runnable hook) {
        try {
            hook.run();
        } catch (Throwable e) {
            log.error("millrace: hook {} failed", name, e);
        }
    }

    private void submit(String name, Runnable hook) {
        try {
            thread.execute(() -> run(name, hook));
        } catch (RejectedExecutionException e) {
            log.warn("millrace: hook {} came too late", name);
        }
    }

    /** Calls the hooks of an event, and returns when they have returned. */
    void callAndWait(Event event) {
        call(event);
        awaitAll();
    }

    /** Waits for hooks that still run. */
    void awaitAll() {
        CompletableFuture<Void> done = new CompletableFuture<>();
        try {
            thread.execute(() -> done.complete(null));
        } catch (RejectedExecutionException e) {
            return; // none runs any more
        }
        Waits.firstOf(LONGEST, done);
    }

    void close() {
        awaitAll();
        thread.shutdown();
    }
}
