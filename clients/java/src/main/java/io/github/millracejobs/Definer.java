package io.github.millracejobs;

import java.util.Collection;

/** Takes periodic jobs: a {@link Client}, or in tests a replacement without a broker. */
public interface Definer {
    /**
     * Sets all periodic jobs of a source, which is the name of a program. What the source had
     * defined before and does not any more is removed. Call it at each deploy: to repeat it changes
     * nothing.
     */
    Defined define(String source, Collection<PeriodicJob> jobs);
}
