package io.github.millracejobs.testing;

import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Enqueuer;
import io.github.millracejobs.Job;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Worker;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;

/** Collects jobs, which a worker's handlers run when they are drained. One thread at a time may use it. */
public final class Fake implements Enqueuer {
    private final Worker worker;
    private final List<ClientMiddleware> middleware = new ArrayList<>();
    private final Deque<Enqueued> jobs = new ArrayDeque<>();

    /** Drains with the handlers of a worker. */
    public Fake(Worker worker) {
        this.worker = worker;
    }

    /** Wraps each enqueue, as a client's. */
    public Fake use(ClientMiddleware wrapper) {
        middleware.add(wrapper);
        return this;
    }

    /** Notes a job, and returns its jid. */
    @Override
    public String enqueue(NewJob job) {
        return ClientMiddleware.through(middleware, job, this::note);
    }

    private String note(NewJob job) {
        Job read = Job.of(job);
        jobs.add(new Enqueued(read, job.at()));
        return read.jid();
    }

    /** Notes many jobs. */
    @Override
    public List<String> enqueueBulk(Collection<NewJob> many) {
        List<String> jids = new ArrayList<>();
        many.forEach(job -> jids.add(enqueue(job)));
        return jids;
    }

    /** {@return what was enqueued and not drained} */
    public List<Enqueued> jobs() {
        return List.copyOf(jobs);
    }

    /**
     * Runs what is there and what that enqueues, scheduled jobs as well. What a handler throws ends it; the job that failed is gone, those
     * behind it stay.
     *
     * @return how many that were
     */
    public int drain() {
        int count = 0;
        for (Enqueued next = jobs.poll(); next != null; next = jobs.poll()) {
            count++;
            Job job = next.job();
            Rethrow.in(() -> worker.perform(job));
        }
        return count;
    }

    /** Forgets what was enqueued. */
    public void clear() {
        jobs.clear();
    }
}
