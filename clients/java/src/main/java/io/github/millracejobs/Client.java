package io.github.millracejobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import javax.net.ssl.SSLContext;

/**
 * Enqueues jobs. It is thread-safe. It connects when it is first used, and again when the
 * connection is lost. Unconfirmed jobs are then published again, with the same jid.
 *
 * <p>Every error is a {@link MillraceException}: {@link InvalidException}, {@link
 * RefusedException}, {@link UnreachableException}, {@link UnconfirmedException} or {@link
 * ClosedException}, and {@link BulkException} for many jobs.
 */
public final class Client implements Enqueuer, Definer, AutoCloseable {
    private final Line line;
    private final Duration timeout;
    private final Codec codec;
    private final List<ClientMiddleware> middleware;

    private Client(Builder builder) {
        this.line = new Line(new Hosts(builder.urls, builder.credentials, builder.tls), builder.failFast);
        this.timeout = builder.timeout;
        this.codec = builder.codec;
        this.middleware = List.copyOf(builder.middleware);
    }

    /**
     * {@return a client for a broker: {@code amqp://user:password@host:port/vhost}, or {@code
     * amqps://}} For a cluster it takes several hosts, {@code amqp://user:password@a,b/vhost}, or
     * several URLs. The default is {@code amqp://guest:guest@127.0.0.1:5672/}. It does not connect
     * yet. Throws IllegalArgumentException if a URL is invalid.
     */
    public static Client of(String... urls) {
        return builder(urls).build();
    }

    /** {@return a builder of a client, with the same URLs as in {@link #of}} */
    public static Builder builder(String... urls) {
        return new Builder(urls);
    }

    /** The settings of a client. */
    public static final class Builder {
        private final List<String> urls;
        private final List<ClientMiddleware> middleware = new ArrayList<>();
        private Duration timeout = Duration.ofSeconds(30);
        private boolean failFast;
        private Codec codec = Codec.standard();
        private Callable<Credentials> credentials;
        private SSLContext tls;

        private Builder(String... urls) {
            this.urls = Urls.orDefault(urls);
        }

        /**
         * Sets how long an enqueue may take; the default is 30 seconds. This includes the wait for
         * a connection. If a request waits for the enqueue, choose a second or two.
         */
        public Builder timeout(Duration most) {
            this.timeout = most;
            return this;
        }

        /**
         * Sets whether an enqueue fails as soon as each host was tried once, instead of waiting for
         * the broker.
         */
        public Builder failFast(boolean fast) {
            this.failFast = fast;
            return this;
        }

        /**
         * Sets a function for the user and the password, in place of those of the URL, for
         * passwords and tokens that rotate. It is called for each connection, the first and each
         * later one. If it throws, or takes more than 30 seconds, that attempt to connect fails.
         * The next attempt calls it again, but never while an earlier call runs.
         */
        public Builder credentials(Callable<Credentials> source) {
            this.credentials = source;
            return this;
        }

        /**
         * Sets TLS for {@code amqps://} URLs, for a private certificate authority or a client
         * certificate. The default is {@link SSLContext#getDefault}, which reads the system
         * properties {@code javax.net.ssl}. The host's name is always checked.
         */
        public Builder tls(SSLContext context) {
            this.tls = context;
            return this;
        }

        /**
         * Sets the codec for arguments that are not plain; the default is {@link Codec#standard}.
         */
        public Builder codec(Codec other) {
            this.codec = other;
            return this;
        }

        /** Adds middleware around each publish. The first added is the outermost. */
        public Builder use(ClientMiddleware wrapper) {
            middleware.add(wrapper);
            return this;
        }

        /**
         * {@return the client} It does not connect yet. Throws IllegalArgumentException if a URL is
         * invalid.
         */
        public Client build() {
            return new Client(this);
        }
    }

    /**
     * Publishes a job, and returns its jid once the broker has <b>confirmed</b> it, or null if
     * middleware did not publish it.
     */
    @Override
    public String enqueue(NewJob job) {
        return enqueue(job, timeout);
    }

    /** Publishes a job, with its own limit of time. */
    public String enqueue(NewJob job, Duration within) {
        long deadline = System.nanoTime() + within.toNanos();
        return ClientMiddleware.through(middleware, job, j -> publishOne(j, deadline));
    }

    /**
     * Publishes a job, waits until the leader has decided, and returns which job stays if there is one
     * with the same key already. It returns null if middleware did not publish the job. Throws
     * UndecidedException if the job is published and no leader has answered in time.
     */
    @Override
    public Decision enqueueUnique(NewJob job) {
        return enqueueUnique(job, timeout);
    }

    /** Enqueues a unique job, with its own limit of time. */
    public Decision enqueueUnique(NewJob job, Duration within) {
        Batch batch = new Batch(line, codec, System.nanoTime() + within.toNanos());
        AtomicReference<Decision> decision = new AtomicReference<>();
        ClientMiddleware.through(middleware, job.asUnique(), j -> {
            String jid = j.jid() == null || j.jid().isEmpty() ? Keys.random(16) : j.jid();
            decision.set(decide(batch, j.jid(jid)));
            return jid;
        });
        return decision.get();
    }

    private static Decision decide(Batch batch, NewJob job) {
        try {
            return batch.decide(job);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            batch.fail(e);
            throw batch.errors().get(0);
        }
    }

    @Override
    public List<String> enqueueBulk(Collection<NewJob> jobs) {
        return enqueueBulk(jobs, timeout);
    }

    /**
     * Publishes many jobs, in order, within a time, and returns their jids when all are answered.
     * Middleware gets each job before any is published: {@code next} checks the job and returns its
     * jid, and does not wait for the broker.
     */
    public List<String> enqueueBulk(Collection<NewJob> jobs, Duration within) {
        Batch batch = new Batch(line, codec, System.nanoTime() + within.toNanos());
        String[] jids = new String[jobs.size()];
        TreeMap<Integer, MillraceException> errors = new TreeMap<>();
        int index = 0;
        for (NewJob job : jobs) {
            int at = index++;
            try {
                jids[at] = ClientMiddleware.through(middleware, job, j -> batch.add(at, j));
            } catch (MillraceException e) {
                errors.put(at, e);
            }
        }
        publish(batch);
        batch.errors().forEach((at, e) -> {
            errors.putIfAbsent(at, e);
            jids[at] = null;
        });
        if (!errors.isEmpty()) {
            throw new BulkException(Arrays.asList(jids), errors);
        }
        return Arrays.asList(jids);
    }

    private String publishOne(NewJob job, long deadline) {
        Batch batch = new Batch(line, codec, deadline);
        String jid = batch.add(0, job);
        publish(batch);
        if (!batch.errors().isEmpty()) {
            throw batch.errors().get(0);
        }
        return jid;
    }

    /**
     * Sets all periodic jobs of a source, which is the name of a program. What the source had
     * defined before and does not any more is removed. Call it at each deploy: to repeat it changes
     * nothing.
     *
     * <p>The leader carries it out. Without a leader it is tried again until the client's timeout.
     * The error is {@link InvalidException} if a definition breaks a rule, {@link RefusedException}
     * if another source has defined one of the jobs or no sidecar leads, and otherwise that of
     * {@link #enqueue}.
     */
    @Override
    public Defined define(String source, Collection<PeriodicJob> jobs) {
        return define(source, jobs, timeout);
    }

    /** Sets all periodic jobs of a source, with its own deadline. */
    public Defined define(String source, Collection<PeriodicJob> jobs, Duration within) {
        return define(source, jobs, null, within);
    }

    @Override
    public Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> limits) {
        return define(source, jobs, limits, timeout);
    }

    /** Sets all periodic jobs and all limits of a source, with its own deadline. */
    public Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> limits, Duration within) {
        return define(source, jobs, limits, null, within);
    }

    @Override
    public Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> limits, Collection<GovernedQueue> queues) {
        return define(source, jobs, limits, queues, timeout);
    }

    /** Sets all periodic jobs, limits and governed queues of a source, with its own deadline. */
    public Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> limits, Collection<GovernedQueue> queues, Duration within) {
        if (jobs == null && limits == null && queues == null) {
            throw new InvalidException("there is nothing to define: give jobs, limits or queues", null);
        }
        String id = Keys.random(16);
        Map<String, Object> definitions = new LinkedHashMap<>();
        definitions.put("source", source);
        if (jobs != null) {
            definitions.put("periodic_jobs", jobs.stream().map(job -> job.definition(codec)).toList());
        }
        if (limits != null) {
            definitions.put("limits", limits.stream().map(Limit::definition).toList());
        }
        if (queues != null) {
            definitions.put("queues", queues.stream().map(GovernedQueue::definition).toList());
        }
        byte[] command = Json.write(Map.of("id", id, "command", "define", "definitions", definitions));
        return Defined.by(new Leader(line, System.nanoTime() + within.toNanos()).ask(id, command));
    }

    private static void publish(Batch batch) {
        try {
            batch.publish();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            batch.fail(e);
        }
    }

    /** Closes the connection. Publishes that still wait for an answer fail. */
    @Override
    public void close() {
        line.close();
    }
}
