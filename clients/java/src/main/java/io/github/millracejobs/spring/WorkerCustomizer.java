package io.github.millracejobs.spring;

import io.github.millracejobs.Worker;

/** A bean that adds handlers and hooks to the worker. */
@FunctionalInterface
public interface WorkerCustomizer {
    /** Changes the worker before it runs, when all beans exist. */
    void customize(Worker worker);
}
