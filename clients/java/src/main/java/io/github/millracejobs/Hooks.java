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

/** What a program wants to be told. Hooks run one after the other in a thread of their own, never where I/O waits for them. */
final class Hooks {
    private static final Duration LONGEST = Duration.ofMinutes(10); // a hook that never ends must not keep the worker

    private final Logger log;
    private final Map<Event, List<Runnable>> hooks = new EnumMap<>(Event.class);
    private final List<BiConsumer<Job, Throwable>> deaths = new ArrayList<>();
    private final ExecutorService thread = Executors.newSingleThreadExecutor(Waits.daemons("millrace hooks"));

    enum Event { STARTUP, QUIET, SHUTDOWN }

    Hooks(Logger log) {
        this.log = log;
    }

    void add(Event event, Runnable hook) {
        hooks.computeIfAbsent(event, e -> new ArrayList<>()).add(hook);
    }

    void addDeath(BiConsumer<Job, Throwable> hook) {
        deaths.add(hook);
    }

    void call(Event event) {
        for (Runnable hook : hooks.getOrDefault(event, List.of())) {
            submit(event.name().toLowerCase(java.util.Locale.ROOT), hook);
        }
    }

    void died(Job job, Throwable error) {
        for (BiConsumer<Job, Throwable> hook : deaths) {
            submit("death", () -> hook.accept(job, error));
        }
    }

    private void submit(String name, Runnable hook) {
        try {
            thread.execute(() -> {
                try {
                    hook.run();
                } catch (Throwable e) {
                    log.error("millrace: hook {} failed", name, e);
                }
            });
        } catch (RejectedExecutionException e) {
            log.warn("millrace: hook {} came too late", name);
        }
    }

    /** Calls the hooks of an event, and returns when they have. */
    void callAndWait(Event event) {
        call(event);
        CompletableFuture<Void> done = new CompletableFuture<>();
        submit("end", () -> done.complete(null));
        Waits.firstOf(LONGEST, done);
    }

    /** Waits for hooks that still run. */
    void close() {
        CompletableFuture<Void> done = new CompletableFuture<>();
        submit("end", () -> done.complete(null));
        Waits.firstOf(LONGEST, done);
        thread.shutdown();
    }
}
