package io.github.millracejobs.spring;

import io.github.millracejobs.WorkerBuilder;

/** A bean that adds lanes, credentials, TLS or an executor to the worker. */
@FunctionalInterface
public interface WorkerBuilderCustomizer {
    /** Changes the worker before it is made. */
    void customize(WorkerBuilder worker);
}
