package io.github.millracejobs.testing;

import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Enqueuer;
import io.github.millracejobs.Job;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Worker;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** Runs a job's handler at once. What the handler throws is the caller's. */
public final class Inline implements Enqueuer {
    private final Worker worker;
    private final List<ClientMiddleware> middleware = new ArrayList<>();

    /** Runs the handlers of a worker. */
    public Inline(Worker worker) {
        this.worker = worker;
    }

    /** Wraps each enqueue, as a client's. */
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
        Job read = Job.of(job);
        Rethrow.in(() -> worker.perform(read));
        return read.jid();
    }

    /** Runs many jobs. */
    @Override
    public List<String> enqueueBulk(Collection<NewJob> jobs) {
        List<String> jids = new ArrayList<>();
        jobs.forEach(job -> jids.add(enqueue(job)));
        return jids;
    }
}
