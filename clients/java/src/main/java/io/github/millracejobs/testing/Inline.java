package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Defined;
import io.github.millracejobs.Definer;
import io.github.millracejobs.Enqueuer;
import io.github.millracejobs.Limit;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.PeriodicJob;
import io.github.millracejobs.Worker;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;

/**
 * Runs a job's handler as soon as the job is enqueued. The caller gets the error of the handler,
 * unless it discards the job.
 */
public final class Inline implements Enqueuer, Definer {
    private final Worker worker;
    private final Definitions definitions = new Definitions();
    private final List<ClientMiddleware> middleware = new ArrayList<>();

    /** Runs the handlers of a worker. */
    public Inline(Worker worker) {
        this.worker = Objects.requireNonNull(worker, "there is no worker to run jobs: use new Inline(worker)");
    }

    /** Adds middleware around each enqueue, as a client does. */
    public Inline use(ClientMiddleware wrapper) {
        middleware.add(wrapper);
        return this;
    }

    /** Runs a job, and returns its jid. */
    @Override
    public String enqueue(NewJob job) {
        return ClientMiddleware.through(middleware, job, this::run);
    }

    private String run(NewJob job) {
        Attempt.Result result = Attempt.of(worker, job).run();
        if (result.failed()) {
            throw Inline.<RuntimeException>unchecked(result.error());
        }
        return result.job().jid();
    }

    /**
     * Throws a handler's exception unchanged, also a checked one that the method does not declare.
     */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E unchecked(Throwable e) throws E {
        throw (E) e;
    }

    /** Runs many jobs. */
    @Override
    public List<String> enqueueBulk(Collection<NewJob> jobs) {
        List<String> jids = new ArrayList<>();
        jobs.forEach(job -> jids.add(enqueue(job)));
        return jids;
    }

    /** Keeps the periodic jobs and limits of a source. In a test, nothing is due or waits. */
    @Override
    public Defined define(String source, Collection<PeriodicJob> periodic, Collection<Limit> limits) {
        return definitions.define(source, periodic, limits);
    }

    /** {@return the periodic jobs that a source has defined} */
    public List<PeriodicJob> periodic(String source) {
        return definitions.periodic(source);
    }

    /** {@return the limits that a source has defined} */
    public List<Limit> limits(String source) {
        return definitions.limits(source);
    }
}
