package io.github.millracejobs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import javax.net.ssl.SSLContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The settings of a worker. Without queues and lanes it serves the queue {@code default}. */
public final class WorkerBuilder {
    final List<String> urls;
    final Map<String, String> labels = new LinkedHashMap<>();
    String tag = "";
    Duration stopTimeout = Duration.ofSeconds(25);
    int maxDeaths = 3;
    String version = Version.OF_LIBRARY;
    boolean declare = true;
    Duration heartbeat = Duration.ofSeconds(10);
    Logger logger = LoggerFactory.getLogger("millrace");
    Codec codec = Codec.standard();
    Executor executor;
    Callable<Credentials> credentials;
    SSLContext tls;

    private final List<Lane> lanes = new ArrayList<>();
    private Lane own;
    private int concurrency = Lane.CONCURRENCY;

    WorkerBuilder(String... urls) {
        this.urls = Urls.orDefault(urls);
    }

    /** Sets queues in strict order: the first queue that has a job is served. */
    public WorkerBuilder queues(String... names) {
        own = Lane.strict("default", names);
        return this;
    }

    /** Sets queues with weights: each is served in proportion to its weight. */
    public WorkerBuilder queues(Map<String, Integer> weights) {
        own = Lane.weighted("default", weights);
        return this;
    }

    /** Sets how many of their jobs run concurrently; the default is 5. */
    public WorkerBuilder concurrency(int threads) {
        this.concurrency = threads;
        return this;
    }

    /** Adds a lane: threads with queues of their own. */
    public WorkerBuilder lane(Lane lane) {
        lanes.add(lane);
        return this;
    }

    /** Sets the tag, a name for this kind of worker. It is part of the identity. */
    public WorkerBuilder tag(String name) {
        this.tag = name;
        return this;
    }

    /** Adds a label, which is shown beside the worker. */
    public WorkerBuilder label(String name, String value) {
        labels.put(name, value);
        return this;
    }

    /** Sets how long jobs may continue after a stop; the default is 25 seconds. */
    public WorkerBuilder stopTimeout(Duration time) {
        this.stopTimeout = time;
        return this;
    }

    /** Sets after how many deaths of workers a job is poison; the default is 3, and 0 is never. */
    public WorkerBuilder maxDeaths(int workers) {
        this.maxDeaths = workers;
        return this;
    }

    /** Sets your program's version, which is shown beside the worker. */
    public WorkerBuilder version(String text) {
        this.version = text;
        return this;
    }

    /** Sets whether it declares missing queues. Otherwise it waits for them. */
    public WorkerBuilder declare(boolean missing) {
        this.declare = missing;
        return this;
    }

    /** Sets the time between heartbeats; the default is 10 seconds. */
    public WorkerBuilder heartbeat(Duration time) {
        this.heartbeat = time;
        return this;
    }

    /** Sets the codec that reads arguments as types; the default is {@link Codec#standard}. */
    public WorkerBuilder codec(Codec other) {
        this.codec = other;
        return this;
    }

    /**
     * Sets the executor that runs the jobs, one task for each job. By default, each lane has
     * threads of its own. The executor gets at most as many tasks as the lanes have concurrency.
     * For virtual threads, use {@code Executors.newVirtualThreadPerTaskExecutor()}. It must not run
     * tasks in the calling thread. The worker does not shut it down.
     */
    public WorkerBuilder executor(Executor other) {
        this.executor = other;
        return this;
    }

    /**
     * Sets a function for the user and the password of each connection, as {@link
     * Client.Builder#credentials} does.
     */
    public WorkerBuilder credentials(Callable<Credentials> source) {
        this.credentials = source;
        return this;
    }

    /** Sets TLS for {@code amqps://} URLs, as {@link Client.Builder#tls} does. */
    public WorkerBuilder tls(SSLContext context) {
        this.tls = context;
        return this;
    }

    /**
     * Sets the logger; the default is the one named {@code millrace}. {@code NOPLogger.NOP_LOGGER}
     * silences the worker.
     */
    public WorkerBuilder logger(Logger other) {
        this.logger = other;
        return this;
    }

    /**
     * {@return the worker} It does not connect yet. Throws IllegalArgumentException if a setting is
     * invalid.
     */
    public Worker build() {
        if (tag.contains(":")) {
            throw new IllegalArgumentException("the tag " + tag + " has a colon");
        }
        return new Worker(this);
    }

    /** Returns all lanes, the lane {@code default} first. */
    List<Lane> lanes() {
        List<Lane> all = new ArrayList<>(lanes);
        if (own != null || lanes.isEmpty()) {
            all.add(0, (own == null ? Lane.strict("default", Wire.DEFAULT_QUEUE) : own).concurrency(concurrency));
        }
        Set<String> names = new HashSet<>();
        for (Lane lane : all) {
            lane.check();
            if (!names.add(lane.name)) {
                throw new IllegalArgumentException("two lanes are called " + lane.name);
            }
        }
        return all;
    }
}
