package io.github.millracejobs;

import java.util.Collection;

/** Takes periodic jobs, limits and governed queues: a {@link Client}, or in tests a replacement without a broker. */
public interface Definer {
    /**
     * Sets all periodic jobs of a source, which is the name of a program. What the source had
     * defined before and does not any more is removed. Call it at each deploy: to repeat it changes
     * nothing.
     */
    default Defined define(String source, Collection<PeriodicJob> jobs) {
        return define(source, jobs, (Collection<Limit>) null);
    }

    /**
     * Sets all periodic jobs and all limits of a source. What is null leaves what there is of its
     * kind as it is.
     */
    default Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> limits) {
        return define(source, jobs, limits, (Collection<GovernedQueue>) null);
    }

    /**
     * Sets all periodic jobs, all limits and all governed queues of a source. What is null leaves
     * what there is of its kind as it is.
     */
    Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> limits, Collection<GovernedQueue> queues);
}
