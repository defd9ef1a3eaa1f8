package io.github.millracejobs.testing;

import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Defined;
import io.github.millracejobs.Definer;
import io.github.millracejobs.Enqueuer;
import io.github.millracejobs.Limit;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.PeriodicJob;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** What Fake and Inline have in common. T is the type of the replacement itself. */
abstract class Replacement<T> implements Enqueuer, Definer {
    private final Definitions definitions = new Definitions();
    private final List<ClientMiddleware> middleware = new ArrayList<>();

    abstract T self();

    /** Takes a job that has passed the middleware, and returns its jid. */
    abstract String take(NewJob job);

    /** Adds middleware around each enqueue, as a client does. */
    public T use(ClientMiddleware wrapper) {
        middleware.add(wrapper);
        return self();
    }

    /** Takes a job, and returns its jid. */
    @Override
    public String enqueue(NewJob job) {
        return ClientMiddleware.through(middleware, job, this::take);
    }

    /** Takes many jobs. */
    @Override
    public List<String> enqueueBulk(Collection<NewJob> many) {
        List<String> jids = new ArrayList<>();
        many.forEach(job -> jids.add(enqueue(job)));
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
