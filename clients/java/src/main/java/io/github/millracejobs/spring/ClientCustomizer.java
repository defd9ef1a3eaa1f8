package io.github.millracejobs.spring;

import io.github.millracejobs.Client;

/** A bean that adds credentials or TLS to the client, or changes it otherwise. */
@FunctionalInterface
public interface ClientCustomizer {
    /** Changes the client before it is made. */
    void customize(Client.Builder client);
}
