package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Decision;
import io.github.millracejobs.Defined;
import io.github.millracejobs.Definer;
import io.github.millracejobs.Enqueuer;
import io.github.millracejobs.GovernedQueue;
import io.github.millracejobs.Limit;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.PeriodicJob;
import io.github.millracejobs.Worker;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** What Fake and Inline have in common. T is the type of the replacement itself. */
abstract class Replacement<T> implements Enqueuer, Definer {
    private final Definitions definitions = new Definitions();
    private final List<ClientMiddleware> middleware = new ArrayList<>();
    private final Worker worker;
    final Keys keys = new Keys();

    Replacement(Worker worker) {
        this.worker = worker;
    }

    abstract T self();

    /** Takes a job that has passed the middleware, and is no duplicate. */
    abstract void take(Attempt attempt, NewJob job);

    /** Removes a job that waits, for a later one with the same key, and returns whether it did. */
    boolean remove(String jid) {
        return false;
    }

    /** The jid of a job, and which job stays. */
    private record Taken(String jid, Decision decision) {}

    private Taken decide(NewJob job) {
        Attempt attempt = Attempt.of(worker, job);
        Decision decision = keys.decide(attempt.job(), job.unique(), this::remove);
        if (!decision.duplicate()) {
            take(attempt, job);
        }
        return new Taken(attempt.job().jid(), decision);
    }

    /** Adds middleware around each enqueue, as a client does. */
    public T use(ClientMiddleware wrapper) {
        middleware.add(wrapper);
        return self();
    }

    /** Takes a job, and returns its jid. */
    @Override
    public String enqueue(NewJob job) {
        return ClientMiddleware.through(middleware, job, j -> decide(j).jid());
    }

    /**
     * Takes a job, and returns which job stays if there is one with the same key. A duplicate is not
     * taken.
     */
    @Override
    public Decision enqueueUnique(NewJob job) {
        AtomicReference<Decision> decision = new AtomicReference<>();
        ClientMiddleware.through(middleware, job.asUnique(), j -> {
            Taken taken = decide(j);
            decision.set(taken.decision());
            return taken.jid();
        });
        return decision.get();
    }

    /** Takes many jobs. */
    @Override
    public List<String> enqueueBulk(Collection<NewJob> many) {
        List<String> jids = new ArrayList<>();
        many.forEach(job -> jids.add(enqueue(job)));
        return jids;
    }

    /** Keeps what a source defines. In a test, nothing is due or waits. */
    @Override
    public Defined define(String source, Collection<PeriodicJob> periodic, Collection<Limit> limits, Collection<GovernedQueue> queues) {
        return definitions.define(source, periodic, limits, queues);
    }

    /** {@return the periodic jobs that a source has defined} */
    public List<PeriodicJob> periodic(String source) {
        return definitions.periodic(source);
    }

    /** {@return the limits that a source has defined} */
    public List<Limit> limits(String source) {
        return definitions.limits(source);
    }

    /** {@return the governed queues that a source has defined} */
    public List<GovernedQueue> queues(String source) {
        return definitions.queues(source);
    }
}
