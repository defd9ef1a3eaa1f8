package io.github.millracejobs;

import java.util.Objects;

/**
 * A user of the broker, with the password or token. {@code toString} does not show the password.
 */
public record Credentials(String username, String password) {
    /** Refuses null. */
    public Credentials {
        Objects.requireNonNull(username, "username");
        Objects.requireNonNull(password, "password");
    }

    @Override
    public String toString() {
        return "Credentials[username=" + username + "]";
    }
}
