package io.github.millracejobs;

import java.math.BigDecimal;

/** A failure that the library itself speaks of. */
final class Said extends RuntimeException implements Described {
    private static final long serialVersionUID = 1;

    private final String errorClass;

    private Said(String errorClass, String message, Throwable cause) {
        super(message, cause);
        this.errorClass = errorClass;
    }

    static Said timeout(double seconds, Throwable cause) {
        return new Said("Timeout", "ran longer than " + BigDecimal.valueOf(seconds).stripTrailingZeros().toPlainString() + " s", cause);
    }

    static Said unknownClass(String name) {
        return new Said("UnknownClass", "no handler for class " + name, null);
    }

    static Said expired() {
        return new Said("expired", "expired before it began", null);
    }

    static Said poison(int deaths) {
        return new Said("poison", "its worker died " + deaths + " times while it ran", null);
    }

    @Override
    public String errorClass() {
        return errorClass;
    }
}
