package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;

/**
 * Reads and writes the stream {@code jobs.begins}, from which workers find jobs that kill their
 * workers. Without the stream, it lets every job begin.
 */
final class Ledger {
    /**
     * How long a broker takes at most to remove the exclusive queue of a dead process, after it has
     * begun to deliver that process's jobs again.
     */
    private static final Duration AFTERMATH = Duration.ofMillis(500);
    /** How long a process may take to reconnect, before a job is buried for its death. */
    private static final Duration GRACE = Duration.ofSeconds(10);
    /** How long a record may take to come back from the stream. */
    private static final Duration READ_BACK = Duration.ofSeconds(30);
    private static final int PREFETCH = 500;

    private final Session session;
    private final Worker worker;
    private final Begins begins = new Begins(); // guarded by this, like the next two fields
    private final Set<String> gone = new HashSet<>(); // exclusive queues that do not exist any more
    private final Map<BeginKey, List<CompletableFuture<Void>>> waiting = new HashMap<>();
    private volatile CompletableFuture<Lost> reading; // null: there is no stream

    Ledger(Session session) {
        this.session = session;
        this.worker = session.worker;
    }

    private boolean isUsable() {
        return reading != null && !reading.isDone();
    }

    /**
     * Writes that this process lives, and begins to read. It reads second, because a reader of an
     * empty stream keeps LavinMQ busy.
     */
    void open() {
        if (worker.maxDeaths <= 0) {
            return;
        }
        try {
            List<String> queues = new ArrayList<>();
            worker.pools.forEach(pool -> queues.addAll(pool.lane.queues));
            Map<String, Object> more = new LinkedHashMap<>();
            more.put("identity", worker.identity);
            more.put("queue", session.control);
            more.put("queues", queues);
            write("opened", worker.process, more, READ_BACK);
            reading = read();
        } catch (Lost | RefusedException | TimeoutException e) {
            worker.log.warn("millrace: jobs that kill their workers are not found, there is no stream for it: {}", e.getMessage());
        }
    }

    private CompletableFuture<Lost> read() throws Lost {
        Channel channel = session.link.channel();
        CompletableFuture<Lost> until = Link.lost(channel);
        Link.call(() -> {
            channel.basicQos(PREFETCH);
            return channel.basicConsume(Wire.BEGINS, false, worker.process + "-begins", false, false, Map.of("x-stream-offset", "first"),
                    new DefaultConsumer(channel) {
                        @Override
                        public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
                            apply(body);
                            try {
                                channel.basicAck(envelope.getDeliveryTag(), false);
                            } catch (IOException | AlreadyClosedException e) {
                                // The channel is lost, which is noticed elsewhere.
                            }
                        }
                    });
        });
        return until;
    }

    private void apply(byte[] body) {
        List<CompletableFuture<Void>> read = null;
        synchronized (this) {
            Map<String, Object> record = begins.apply(body);
            if (record != null && "begun".equals(record.get("type")) && worker.process.equals(record.get("process"))) {
                read = waiting.remove(Begins.key(record));
            }
        }
        if (read != null) {
            read.forEach(one -> one.complete(null));
        }
    }

    private void write(String type, String process, Map<String, Object> more, Duration within) throws Lost, TimeoutException {
        Map<String, Object> record = new LinkedHashMap<>();
        record.put("type", type);
        record.put("process", process);
        record.putAll(more);
        record.put("at", Json.time(Wire.now()));
        try {
            session.publisher.publish(Message.record(Wire.BEGINS, Json.write(record)), within);
        } catch (InterruptedException e) {
            throw new TimeoutException("interrupted");
        }
    }

    /** Writes a record that may be lost. */
    private void attempt(String type, String process, Map<String, Object> more) {
        try {
            write(type, process, more, Session.SHORT);
        } catch (Lost | RefusedException | TimeoutException e) {
            worker.log.warn("millrace: could not write that a job or process has {}: {}", type, e.getMessage());
        }
    }

    /**
     * Writes that this process has no jobs any more. Otherwise it would count as dead, which is one
     * of three deaths for the jobs that it ran.
     */
    void close() {
        if (isUsable()) {
            attempt("closed", worker.process, Map.of());
        }
    }

    /**
     * Writes that a job has ended whose begin was written. Returns false if this connection cannot.
     */
    boolean ended(BeginKey key) {
        if (!isUsable()) {
            return false;
        }
        attempt("ended", worker.process, Map.of("jid", key.jid(), "body", key.body()));
        return true;
    }

    /**
     * Writes that a redelivered job begins. Returns how many processes died while they ran it.
     * Returns a negative number if the job must not begin, because the worker stops or has lost the
     * delivery.
     */
    int begin(Task task, Job job) {
        if (!isUsable()) {
            return 0;
        }
        if (!pause(task, AFTERMATH)) {
            return -1;
        }
        BeginKey key = BeginKey.of(job);
        try {
            String blames = blame(key, job);
            CompletableFuture<Void> read = expect(key);
            write("begun", worker.process, Map.of("jid", key.jid(), "body", key.body(), "blames", blames), READ_BACK);
            if (!Waits.firstOf(READ_BACK, read, session.lost) || !read.isDone()) {
                throw new TimeoutException("it does not come back from the stream");
            }
        } catch (Lost | RefusedException | TimeoutException e) {
            if (task.attachment().lost.isDone()) {
                return -1;
            }
            worker.jobLog.beginUnwritten(job, e);
            return 0;
        }
        int deaths = count(key, job.queue());
        if (deaths < worker.maxDeaths) {
            return deaths;
        }
        // Wait before the job is buried: a process that seems dead may only be reconnecting.
        if (!pause(task, GRACE)) {
            return -1;
        }
        synchronized (this) {
            gone.clear();
        }
        return count(key, job.queue());
    }

    /** Waits for some time. Returns false if the delivery is lost, or the worker stops. */
    private boolean pause(Task task, Duration time) {
        return !Waits.firstOf(time, task.attachment().lost, worker.stopped);
    }

    private synchronized CompletableFuture<Void> expect(BeginKey key) {
        CompletableFuture<Void> read = new CompletableFuture<>();
        waiting.computeIfAbsent(key, k -> new ArrayList<>()).add(read);
        return read;
    }

    private String blame(BeginKey key, Job job) throws Lost {
        Set<String> now = look(key, job.queue());
        synchronized (this) {
            return begins.blame(key, job.queue(), worker.process, job.enqueuedAt(), now);
        }
    }

    private int count(BeginKey key, String queue) {
        Set<String> now;
        try {
            now = look(key, queue);
        } catch (Lost e) {
            synchronized (this) {
                now = new HashSet<>(gone);
            }
        }
        synchronized (this) {
            return begins.deaths(key, worker.process, now);
        }
    }

    /** Checks which of the processes that count for a job are dead. Writes newly found deaths. */
    private Set<String> look(BeginKey key, String queue) throws Lost {
        Map<String, String> candidates;
        synchronized (this) {
            candidates = begins.maybeDead(key, queue, worker.process);
            candidates.values().removeAll(gone);
        }
        for (Map.Entry<String, String> one : candidates.entrySet()) {
            if (session.link.exists(one.getValue())) {
                continue;
            }
            synchronized (this) {
                gone.add(one.getValue());
            }
            attempt("died", one.getKey(), Map.of());
        }
        synchronized (this) {
            return new HashSet<>(gone);
        }
    }
}
