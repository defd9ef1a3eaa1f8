package io.github.millracejobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.slf4j.Logger;

/** Runs the jobs of its queues. Register handlers, then call {@link #run}. */
public final class Worker implements AutoCloseable {
    final Logger log;
    final JobLog jobLog;
    final Hosts hosts;
    final String tag;
    final Map<String, String> labels;
    final Duration stopTimeout;
    final int maxDeaths;
    final String version;
    final boolean declare;
    final Duration heartbeat;
    final Codec codec;
    final String identity;
    /** A unique name, also among processes with the same identity. */
    final String process = Keys.random(8);
    final double startedAt = Wire.now();
    final List<Pool> pools = new ArrayList<>();
    final Map<String, Registered> handlers = new HashMap<>();
    final Hooks hooks;
    final Running running = new Running();
    final Metrics metrics;
    final CompletableFuture<Void> stopped = new CompletableFuture<>();
    final CompletableFuture<Void> hurried = new CompletableFuture<>();
    /** Runs timeouts of jobs, and metrics that are due. */
    final ScheduledThreadPoolExecutor clock = new ScheduledThreadPoolExecutor(1, Waits.daemons("millrace clock"));
    /** Runs the callbacks of the AMQP library. They must not wait. */
    final ExecutorService deliveries = Waits.callbacks("millrace deliveries", this::reconnect);

    private final List<Middleware> middleware = new ArrayList<>();
    private final Queue<BeginKey> unended = new LinkedBlockingQueue<>(10_000);
    private final AtomicBoolean begun = new AtomicBoolean();
    private final AtomicBoolean quieted = new AtomicBoolean();
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private volatile Set<String> paused = Set.of();
    private volatile CompletableFuture<Void> beatDue = new CompletableFuture<>();
    private volatile Session session; // the latest
    private volatile boolean wrapped; // handlers have their middleware
    private boolean interrupted;

    Worker(WorkerBuilder builder) {
        log = builder.logger;
        jobLog = new JobLog(log);
        hooks = new Hooks(log);
        hosts = new Hosts(builder.urls, builder.credentials, builder.tls);
        tag = builder.tag;
        labels = Map.copyOf(builder.labels);
        stopTimeout = builder.stopTimeout;
        maxDeaths = builder.maxDeaths;
        version = builder.version;
        declare = builder.declare;
        heartbeat = builder.heartbeat;
        codec = builder.codec;
        identity = Host.NAME + ":" + Host.PID + (tag.isEmpty() ? "" : ":" + tag);
        builder.lanes().forEach(lane -> pools.add(new Pool(lane, builder.executor)));
        metrics = new Metrics(identity, clock);
        clock.setRemoveOnCancelPolicy(true);
    }

    /**
     * {@return a builder of a worker on a broker: {@code amqp://user:password@host:port/vhost}, or
     * {@code amqps://}} For a cluster it takes several hosts, {@code
     * amqp://user:password@a,b/vhost}, or several URLs. The default is {@code
     * amqp://guest:guest@127.0.0.1:5672/}.
     */
    public static WorkerBuilder builder(String... urls) {
        return new WorkerBuilder(urls);
    }

    /**
     * Registers the handler of a class. Call it before {@link #run}. Throws
     * IllegalArgumentException if the class is empty or has a handler already, and
     * IllegalStateException if the worker runs already.
     */
    public Worker handle(String className, Handler handler) {
        return handle(className, handler, new HandlerOptions());
    }

    /** Registers the handler of a class, with options. */
    public Worker handle(String className, Handler handler, HandlerOptions options) {
        if (className == null || className.isEmpty()) {
            throw new IllegalArgumentException("the class is empty");
        }
        Objects.requireNonNull(handler, "the handler of class " + className);
        Objects.requireNonNull(options, "the options of class " + className);
        checkNotBegun("a handler of class " + className);
        if (handlers.putIfAbsent(className, new Registered(handler, options)) != null) {
            throw new IllegalArgumentException("class " + className + " has a handler already");
        }
        return this;
    }

    /**
     * Registers the handler of a class whose first argument is a value of a type, usually a record.
     * Further arguments are ignored. A job whose argument does not fit fails with an {@link
     * ArgumentException}.
     */
    public <A> Worker handle(String className, Class<A> type, TypedHandler<? super A> handler) {
        return handle(className, type, handler, new HandlerOptions());
    }

    /** Registers such a handler, with options. */
    public <A> Worker handle(String className, Class<A> type, TypedHandler<? super A> handler, HandlerOptions options) {
        Objects.requireNonNull(type, "the type of class " + className);
        Objects.requireNonNull(handler, "the handler of class " + className);
        return handle(className, job -> handler.run(job.arg(0, type), job), options);
    }

    private void checkNotBegun(String what) {
        if (begun.get()) {
            throw new IllegalStateException(what + " comes too late: the worker runs already, or has stopped");
        }
    }

    /** {@return whether it has handlers: without any, each of its jobs would fail} */
    public boolean hasHandlers() {
        return !handlers.isEmpty();
    }

    /**
     * Adds middleware around all handlers. The first added is the outermost. An error that it
     * throws is the job's failure.
     */
    public Worker use(Middleware wrapper) {
        checkNotBegun("middleware");
        middleware.add(wrapper);
        return this;
    }

    /**
     * Adds a hook that runs when the worker consumes for the first time. A hook that fails is
     * logged.
     */
    public Worker onStartup(Runnable hook) {
        checkNotBegun("a hook");
        hooks.add(Hooks.Event.STARTUP, hook);
        return this;
    }

    /** Adds a hook that runs when the worker takes no more jobs. */
    public Worker onQuiet(Runnable hook) {
        checkNotBegun("a hook");
        hooks.add(Hooks.Event.QUIET, hook);
        return this;
    }

    /** Adds a hook that runs when every job has ended or was handed back. */
    public Worker onShutdown(Runnable hook) {
        checkNotBegun("a hook");
        hooks.add(Hooks.Event.SHUTDOWN, hook);
        return this;
    }

    /**
     * Adds a hook that gets each failed attempt, with its error, before its retry or death is
     * published. It runs in the thread of the job, which is busy until the hook returns. A hook
     * that fails is logged, and changes nothing.
     */
    public Worker onFailure(BiConsumer<Job, Throwable> hook) {
        checkNotBegun("a hook");
        hooks.addFailure(hook);
        return this;
    }

    /**
     * Adds a hook that gets each job that was given up, with the error, after its dead job is
     * confirmed. A hook that fails is logged.
     */
    public Worker onDeath(BiConsumer<Job, Throwable> hook) {
        checkNotBegun("a hook");
        hooks.addDeath(hook);
        return this;
    }

    /** {@return the worker's name in heartbeats: host, process id, and the tag if there is one} */
    public String identity() {
        return identity;
    }

    /** {@return whether it is connected to the broker} It is not before {@link #run}, nor after it. */
    public boolean isConnected() {
        Session latest = session;
        return latest != null && !latest.lost.isDone();
    }

    /** Returns the handler of a class, with middleware around it, or null. */
    Registered registered(String className) {
        Registered handler = handlers.get(className);
        return handler == null || wrapped ? handler : wrap(handler);
    }

    private Registered wrap(Registered handler) {
        return new Registered(Middleware.wrap(middleware, handler.run()), handler.options());
    }

    /** Makes the worker take no more jobs. Running jobs continue. */
    public void quiet() {
        if (quieted.compareAndSet(false, true)) {
            hooks.call(Hooks.Event.QUIET);
            changed();
        }
    }

    /**
     * Makes {@link #run} return once all jobs have ended, or were handed back when the stop timeout
     * is over. A second call ends the wait.
     */
    public void stop() {
        if (stopped.isDone()) {
            hurried.complete(null);
            return;
        }
        quiet();
        changed(); // now no lane is about to begin a job
        stopped.complete(null);
        running.stopping();
        changed();
    }

    /** Stops the worker, and waits until {@link #run} has returned, in any thread. */
    @Override
    public void close() {
        if (begun.compareAndSet(false, true)) {
            end();
            return;
        }
        stop();
        Session.await(ended);
    }

    /**
     * Runs jobs until {@link #stop} is called, or this thread is interrupted, which has the same
     * effect. It reconnects when a connection is lost. Throws UnreachableException if the broker
     * refuses the worker at its first attempt.
     */
    public void run() {
        if (!begun.compareAndSet(false, true)) {
            throw new IllegalStateException("a worker runs once");
        }
        handlers.replaceAll((name, handler) -> wrap(handler));
        wrapped = true;
        try {
            sessions();
        } finally {
            end();
            jobLog.stopped(this);
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Runs jobs as {@link #run} does, with the signals of job workers: SIGTSTP makes it quiet,
     * SIGTERM and SIGINT stop it, and a second one stops it immediately. At the end it restores the
     * signals.
     */
    public void runWithSignals() {
        try (Signals signals = new Signals()) {
            signals.on("TSTP", this::quiet);
            signals.on("TERM", this::stop);
            signals.on("INT", this::stop);
            run();
        }
    }

    private void end() {
        hooks.close();
        pools.forEach(Pool::close);
        clock.shutdownNow();
        ended.complete(null);
    }

    private void sessions() {
        Waits.Pauses pauses = new Waits.Pauses();
        for (boolean first = true; !isStopping(); ) {
            Lost why;
            try {
                Session opened = open();
                if (opened == null) {
                    break;
                }
                session = opened;
                if (first) {
                    jobLog.started(this);
                    hooks.call(Hooks.Event.STARTUP);
                }
                first = false;
                pauses = new Waits.Pauses();
                why = opened.run();
                if (why == null) {
                    return;
                }
            } catch (Lost e) {
                if (first && e.isUnwelcome()) {
                    throw new UnreachableException("the broker turns us away: " + e.getMessage(), e);
                }
                why = e;
            }
            log.warn("millrace: no connection to the broker, trying again: {}", why.getMessage());
            awaitStop(pauses.next());
        }
        running.await(stopTimeout, hurried);
        running.handBack();
        hooks.callAndWait(Hooks.Event.SHUTDOWN);
    }

    /** Connects. Returns null if the worker stops, which must not wait for a connection. */
    private Session open() throws Lost {
        CompletableFuture<Session> opening = new CompletableFuture<>();
        Waits.start("millrace connects", () -> {
            try {
                opening.complete(Session.open(this));
            } catch (Throwable e) {
                opening.completeExceptionally(e);
            }
        });
        awaitStopOr(opening);
        if (!opening.isDone()) {
            opening.thenAccept(late -> late.link.close(Session.SHORT));
            return null;
        }
        try {
            return opening.get();
        } catch (ExecutionException | InterruptedException e) {
            throw e.getCause() instanceof Lost lost ? lost : new Lost(e.getCause() == null ? e : e.getCause());
        }
    }

    /** Waits until the worker stops or an event comes. An interrupt stops the worker. */
    void awaitStopOr(CompletableFuture<?> event) {
        while (!stopped.isDone() && !event.isDone()) {
            Session.await(stopped, event);
            heedInterrupt();
        }
    }

    private void awaitStop(Duration most) {
        Waits.firstOf(most, stopped);
        heedInterrupt();
    }

    private void heedInterrupt() {
        if (Thread.interrupted()) {
            interrupted = true;
            stop();
        }
    }

    /** Drops the connection, because a delivery may have been lost on it. */
    private void reconnect() {
        Session latest = session;
        if (latest != null) {
            Waits.start("millrace reconnects", () -> latest.link.close(Session.SHORT));
        }
    }

    boolean isQuiet() {
        return quieted.get();
    }

    boolean isStopping() {
        return stopped.isDone();
    }

    boolean isPaused(String queue) {
        return paused.contains(queue);
    }

    /** Returns the worker's state in heartbeats. */
    String state() {
        return isStopping() ? "stopping" : isQuiet() ? "quiet" : "running";
    }

    void paused(Set<String> names) {
        paused = names;
        changed();
    }

    synchronized void pause(String queue, boolean on) {
        Set<String> names = new HashSet<>(paused);
        if (on ? names.add(queue) : names.remove(queue)) {
            paused(names);
        }
    }

    /** Makes lanes and heartbeat react to a change. */
    private void changed() {
        pools.forEach(Pool::changed);
        beatDue.complete(null);
    }

    /** Returns a future that completes when the next heartbeat is due early. */
    CompletableFuture<Void> nextBeat() {
        if (beatDue.isDone()) {
            beatDue = new CompletableFuture<>();
        }
        return beatDue;
    }

    /**
     * Writes that a job has ended whose begin was written. If the connection is lost, the next one
     * writes it.
     */
    void ended(Task task, BeginKey key) {
        Session latest = session;
        if (!(latest == null ? task.attachment().session : latest).ledger.ended(key)) {
            unended.offer(key);
        }
    }

    /** Writes the ends that the last connection could not write. */
    void catchUp(Session on) {
        for (BeginKey key = unended.poll(); key != null; key = unended.poll()) {
            if (!on.ledger.ended(key)) {
                unended.offer(key);
                return;
            }
        }
    }
}
