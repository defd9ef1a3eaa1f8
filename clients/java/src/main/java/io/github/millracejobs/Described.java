package io.github.millracejobs;

import java.util.List;

/** An error that says itself what records say of it. */
interface Described {
    /** What stands in the place of its class's name. */
    String errorClass();

    /** Where it came from; null: as its stack trace says. */
    default List<String> backtrace() {
        return null;
    }
}
