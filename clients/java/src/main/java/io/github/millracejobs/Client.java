package io.github.millracejobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.TreeMap;

/**
 * Enqueues jobs. Many threads may use it at once. It connects when it has to, and again when a connection is lost; what was not confirmed is
 * then published again, with the same jid.
 *
 * <p>What goes wrong is a {@link MillraceException}: {@link InvalidException}, {@link RefusedException}, {@link UnreachableException},
 * {@link UnconfirmedException} or {@link ClosedException}, and {@link BulkException} of many jobs.
 */
public final class Client implements Enqueuer, AutoCloseable {
    private final Line line;
    private final Duration timeout;
    private final List<ClientMiddleware> middleware;

    private Client(Builder builder) {
        this.line = new Line(new Hosts(builder.urls));
        this.timeout = builder.timeout;
        this.middleware = List.copyOf(builder.middleware);
    }

    /**
     * {@return a client for a broker: {@code amqp://user:password@host:port/vhost}, or {@code amqps://}} Of a cluster it takes several hosts:
     * {@code amqp://user:password@a,b/vhost}, or several URLs. It does not connect yet. IllegalArgumentException: that is no broker's URL.
     */
    public static Client of(String... urls) {
        return builder(urls).build();
    }

    /** {@return what makes a client for a broker, of whose URLs it takes as many as {@link #of}} */
    public static Builder builder(String... urls) {
        return new Builder(urls);
    }

    /** How a client is to be. */
    public static final class Builder {
        private final List<String> urls;
        private final List<ClientMiddleware> middleware = new ArrayList<>();
        private Duration timeout = Duration.ofSeconds(30);

        private Builder(String... urls) {
            this.urls = List.of(urls);
        }

        /** Sets how long a publish may take; 30 seconds if nothing is said. */
        public Builder timeout(Duration most) {
            this.timeout = most;
            return this;
        }

        /** Wraps each publish. The first added is the outermost. */
        public Builder use(ClientMiddleware wrapper) {
            middleware.add(wrapper);
            return this;
        }

        /** {@return the client} It does not connect yet. IllegalArgumentException: that is no broker's URL. */
        public Client build() {
            return new Client(this);
        }
    }

    /** Publishes a job, and returns its jid once the broker has <b>confirmed</b> it; null if middleware did not let it pass. */
    @Override
    public String enqueue(NewJob job) {
        return enqueue(job, timeout);
    }

    /** The same, within a time of its own. */
    public String enqueue(NewJob job, Duration within) {
        long deadline = System.nanoTime() + within.toNanos();
        return ClientMiddleware.through(middleware, job, j -> publishOne(j, deadline));
    }

    @Override
    public List<String> enqueueBulk(Collection<NewJob> jobs) {
        return enqueueBulk(jobs, timeout);
    }

    /** Publishes many jobs within a time, in order, and returns their jids when all are answered. */
    public List<String> enqueueBulk(Collection<NewJob> jobs, Duration within) {
        long deadline = System.nanoTime() + within.toNanos();
        TreeMap<Integer, MillraceException> errors = new TreeMap<>();
        List<String> jids = middleware.isEmpty() ? publishAll(jobs, deadline, errors) : oneByOne(jobs, deadline, errors);
        if (!errors.isEmpty()) {
            throw new BulkException(jids, errors);
        }
        return jids;
    }

    /** With middleware each is awaited inside, for that is where its jid and error are expected. */
    private List<String> oneByOne(Collection<NewJob> jobs, long deadline, TreeMap<Integer, MillraceException> errors) {
        List<String> jids = new ArrayList<>(jobs.size());
        for (NewJob job : jobs) {
            try {
                jids.add(ClientMiddleware.through(middleware, job, j -> publishOne(j, deadline)));
            } catch (MillraceException e) {
                errors.put(jids.size(), e);
                jids.add(null);
            }
        }
        return jids;
    }

    private String publishOne(NewJob job, long deadline) {
        TreeMap<Integer, MillraceException> errors = new TreeMap<>();
        List<String> jids = publishAll(List.of(job), deadline, errors);
        if (!errors.isEmpty()) {
            throw errors.get(0);
        }
        return jids.get(0);
    }

    private List<String> publishAll(Collection<NewJob> jobs, long deadline, TreeMap<Integer, MillraceException> errors) {
        Batch batch = new Batch(line, jobs.size(), deadline);
        int index = 0;
        for (NewJob job : jobs) {
            batch.add(index++, job);
        }
        try {
            batch.publish();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            batch.fail(e);
        }
        errors.putAll(batch.errors());
        return Arrays.asList(batch.jids());
    }

    /** Ends the connection. Publishes that wait for an answer fail. */
    @Override
    public void close() {
        line.close();
    }

    /** Says what a publish has come to whose time is over. */
    static MillraceException late(boolean sent, Throwable why) {
        boolean told = why.getMessage() != null && (why instanceof Lost || why.getCause() instanceof Lost);
        String text = told ? why.getMessage() : "the deadline passed";
        return sent ? new UnconfirmedException("not confirmed: " + text, why) : new UnreachableException("broker not reached: " + text, why);
    }
}
