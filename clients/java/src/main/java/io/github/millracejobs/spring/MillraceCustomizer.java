package io.github.millracejobs.spring;

import io.github.millracejobs.Client;
import io.github.millracejobs.Worker;
import io.github.millracejobs.WorkerBuilder;

/** A bean that changes the client or the worker before the application uses them. */
public interface MillraceCustomizer {
    /** Adds middleware, credentials or TLS to the client. */
    default void customize(Client.Builder client) {}

    /** Adds lanes, credentials, TLS or an executor to the worker. */
    default void customize(WorkerBuilder worker) {}

    /** Adds handlers, middleware and hooks to the worker, before it runs. */
    default void customize(Worker worker) {}
}
