package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Worker;
import java.util.Objects;

/**
 * Runs a job's handler as soon as the job is enqueued. The caller gets the error of the handler,
 * unless it discards the job.
 */
public final class Inline extends Replacement<Inline> {
    /** Runs the handlers of a worker. */
    public Inline(Worker worker) {
        super(Objects.requireNonNull(worker, "there is no worker to run jobs: use new Inline(worker)"));
    }

    @Override
    Inline self() {
        return this;
    }

    @Override
    void take(Attempt attempt, NewJob job) {
        keys.begins(attempt.job(), job.unique());
        Attempt.Result result = attempt.run();
        keys.ends(attempt.job(), job.unique());
        if (result.failed()) {
            throw Inline.<RuntimeException>unchecked(result.error());
        }
    }

    /**
     * Throws a handler's exception unchanged, also a checked one that the method does not declare.
     */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E unchecked(Throwable e) throws E {
        throw (E) e;
    }
}
