package io.github.millracejobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
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
    /** Told apart from all others, also from one with the same identity. */
    final String process = Keys.random(8);
    final double startedAt = Wire.now();
    final List<Pool> pools = new ArrayList<>();
    final Map<String, Registered> handlers = new HashMap<>();
    final Hooks hooks;
    final Running running = new Running();
    final Metrics metrics;
    final CompletableFuture<Void> stopped = new CompletableFuture<>();
    final CompletableFuture<Void> hurried = new CompletableFuture<>();
    /** Timeouts of jobs, and metrics that are due. */
    final ScheduledThreadPoolExecutor clock = new ScheduledThreadPoolExecutor(1, Waits.daemons("millrace clock"));
    /** Where the AMQP library calls back. Nothing waits there. */
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
        identity = Host.NAME + ":" + Host.PID + ":" + tag;
        builder.lanes().forEach(lane -> pools.add(new Pool(lane, builder.executor)));
        metrics = new Metrics(identity, clock);
        clock.setRemoveOnCancelPolicy(true);
    }

    /**
     * {@return what makes a worker on a broker: {@code amqp://user:password@host:port/vhost}, or {@code amqps://}} Of a cluster it takes several
     * hosts: {@code amqp://user:password@a,b/vhost}, or several URLs. Without one the broker is {@code amqp://guest:guest@127.0.0.1:5672/}.
     */
    public static WorkerBuilder builder(String... urls) {
        return new WorkerBuilder(urls);
    }

    /**
     * Registers the handler of a class, before {@link #run}. IllegalArgumentException: the class has a handler already;
     * IllegalStateException: the worker runs already.
     */
    public Worker handle(String className, Handler handler) {
        return handle(className, handler, new HandlerOptions());
    }

    /** Registers the handler of a class, with options. */
    public Worker handle(String className, Handler handler, HandlerOptions options) {
        checkNotBegun("a handler of class " + className);
        if (handlers.putIfAbsent(className, new Registered(handler, options)) != null) {
            throw new IllegalArgumentException("class " + className + " has a handler already");
        }
        return this;
    }

    /**
     * Registers the handler of a class whose first argument is a value of a type, usually a record; further arguments are ignored. A job whose
     * argument does not fit fails with an {@link ArgumentException}.
     */
    public <A> Worker handle(String className, Class<A> type, TypedHandler<? super A> handler) {
        return handle(className, type, handler, new HandlerOptions());
    }

    /** Registers such a handler, with options. */
    public <A> Worker handle(String className, Class<A> type, TypedHandler<? super A> handler, HandlerOptions options) {
        return handle(className, job -> handler.run(job.arg(0, type), job), options);
    }

    private void checkNotBegun(String what) {
        if (begun.get()) {
            throw new IllegalStateException(what + " comes too late: the worker runs already, or has stopped");
        }
    }

    /** Wraps all handlers. The first added is the outermost; what it throws is the job's failure. */
    public Worker use(Middleware wrapper) {
        checkNotBegun("middleware");
        middleware.add(wrapper);
        return this;
    }

    /** Adds a hook that is told when the worker consumes for the first time. A hook that fails is logged. */
    public Worker onStartup(Runnable hook) {
        checkNotBegun("a hook");
        hooks.add(Hooks.Event.STARTUP, hook);
        return this;
    }

    /** Adds a hook that is told when the worker takes no more jobs. */
    public Worker onQuiet(Runnable hook) {
        checkNotBegun("a hook");
        hooks.add(Hooks.Event.QUIET, hook);
        return this;
    }

    /** Adds a hook that is told when every job has ended or was handed back. */
    public Worker onShutdown(Runnable hook) {
        checkNotBegun("a hook");
        hooks.add(Hooks.Event.SHUTDOWN, hook);
        return this;
    }

    /**
     * Adds a hook that gets each failed attempt, with its error, before its retry or death is published. It runs in the thread of the job, which
     * is busy until the hook returns. A hook that fails is logged, and changes nothing.
     */
    public Worker onFailure(BiConsumer<Job, Throwable> hook) {
        checkNotBegun("a hook");
        hooks.addFailure(hook);
        return this;
    }

    /** Adds a hook that gets each job that was given up, with the error, after its dead job is confirmed. A hook that fails is logged. */
    public Worker onDeath(BiConsumer<Job, Throwable> hook) {
        checkNotBegun("a hook");
        hooks.addDeath(hook);
        return this;
    }

    /** {@return how the worker is called in heartbeats: host, process id and tag} */
    public String identity() {
        return identity;
    }

    /** The handler of a class, with middleware around it, or null. */
    Registered registered(String className) {
        Registered handler = handlers.get(className);
        return handler == null || wrapped ? handler : wrap(handler);
    }

    private Registered wrap(Registered handler) {
        return new Registered(Middleware.wrap(middleware, handler.run()), handler.options());
    }

    /** Takes no more jobs. What runs goes on. */
    public void quiet() {
        if (quieted.compareAndSet(false, true)) {
            hooks.call(Hooks.Event.QUIET);
            changed();
        }
    }

    /**
     * Makes {@link #run} return once all jobs have ended, or were handed back when the stop timeout is over. Called again, it does not wait any
     * longer.
     */
    public void stop() {
        if (stopped.isDone()) {
            hurried.complete(null);
            return;
        }
        quiet();
        changed(); // now no lane is about to begin anything
        stopped.complete(null);
        running.stopping();
        changed();
    }

    /** Stops the worker, and waits until {@link #run} has come to its end in whichever thread it was called. */
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
     * Works until {@link #stop} is called, or this thread is interrupted, which is the same. It connects again whenever a connection is lost.
     * UnreachableException: the broker turned the worker away at its first attempt.
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
     * The same, with the signals that job workers know: SIGTSTP makes it quiet, SIGTERM and SIGINT stop it, a second one at once. Then the
     * signals are given back.
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

    /** Connects; null: the worker is to stop, and does not wait for that. */
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

    /** Waits until the worker is to stop or something has happened. An interrupt stops it. */
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

    /** Gives the connection up, with whatever was lost on it. */
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

    /** What heartbeats call the worker's state. */
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

    /** Tells lanes and heartbeat that something else is to be done. */
    private void changed() {
        pools.forEach(Pool::changed);
        beatDue.complete(null);
    }

    /** Done when the next heartbeat is due before its time. */
    CompletableFuture<Void> nextBeat() {
        if (beatDue.isDone()) {
            beatDue = new CompletableFuture<>();
        }
        return beatDue;
    }

    /** Writes down that a job has ended whose begin was; on the next connection, if this one is lost. */
    void ended(Task task, BeginKey key) {
        Session latest = session;
        if (!(latest == null ? task.attachment().session : latest).ledger.ended(key)) {
            unended.offer(key);
        }
    }

    /** Writes what the last connection could not. */
    void catchUp(Session on) {
        for (BeginKey key = unended.poll(); key != null; key = unended.poll()) {
            if (!on.ledger.ended(key)) {
                unended.offer(key);
                return;
            }
        }
    }
}
