package io.github.millracejobs;

import java.util.List;

/** An error that decides how records describe it. */
interface Described {
    /** The name that replaces the name of its class. */
    String errorClass();

    /** The stack to show, or null for its own stack trace. */
    default List<String> backtrace() {
        return null;
    }
}
