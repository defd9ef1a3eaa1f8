package io.github.millracejobs;

import com.rabbitmq.client.Channel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/** A worker on one connection, with all that belongs to this connection. */
final class Session {
    /** How long it waits for publishes that may be lost. */
    static final Duration SHORT = Duration.ofSeconds(2);

    /** A {@link #claimBelow} that the leader has not given. */
    static final long UNKNOWN = -1;

    final Worker worker;
    final Link link;
    final Publisher publisher;
    final Channel metrics; // for metrics, whose publishes are not confirmed
    final Ledger ledger;
    /** The exclusive queue for commands. It vanishes with the connection. */
    final String control;
    /** Jobs of earlier epochs must be claimed. */
    final long claimBelow;
    /** Completes when the connection is lost, or a channel that the whole session needs. */
    final CompletableFuture<Lost> lost;

    private static final Duration HOUR = Duration.ofHours(1);
    // A prefetch with which a consumer never has so many acknowledgements on their way that
    // RabbitMQ holds some back. A channel passes 32 acknowledgements on to a quorum queue at a
    // time. It forgets those that it holds back when it closes, and their jobs run again.
    private static final int FEW_ACKS = 24;
    // How long the broker gets for the last acknowledgements of other consumers.
    private static final Duration ACK_TIME = Duration.ofSeconds(1);

    private final AtomicLong tags = new AtomicLong();
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private volatile long rttMicros;

    private Session(Worker worker, Link link) throws Lost {
        this.worker = worker;
        this.link = link;
        this.lost = link.lost;
        publisher = new Publisher(link);
        publisher.lost.thenAccept(lost::complete);
        metrics = link.channel();
        Link.lost(metrics).thenAccept(lost::complete);
        control = Control.listen(this);
        ledger = new Ledger(this);
        ledger.open();
        claimBelow = Control.askState(this);
    }

    /** Connects, and prepares everything except the lanes. */
    static Session open(Worker worker) throws Lost {
        Link link = worker.hosts.open("millrace worker " + worker.identity, worker.deliveries);
        try {
            return new Session(worker, link);
        } catch (Lost | RuntimeException e) {
            link.close(SHORT);
            throw e;
        }
    }

    long nextTag() {
        return tags.incrementAndGet();
    }

    /**
     * Serves the lanes until the connection is lost, and returns the reason. Returns null when the
     * worker has stopped.
     */
    Lost run() {
        List<Thread> parts = new ArrayList<>();
        for (Pool pool : worker.pools) {
            parts.add(Waits.start("millrace lane " + pool.lane.name, () -> serve(pool)));
        }
        parts.add(Waits.start("millrace heartbeats", this::beats));
        worker.metrics.attach(this);
        parts.add(Waits.start("millrace ends", () -> worker.catchUp(this)));
        worker.awaitStopOr(lost);
        if (lost.isDone()) {
            end(parts);
            return lost.join();
        }
        worker.running.await(worker.stopTimeout, worker.hurried);
        worker.running.handBack();
        finish();
        awaitAcks();
        end(parts);
        return null;
    }

    /** Calls the shutdown hooks, and sends the last records and the last heartbeat. */
    private void finish() {
        worker.hooks.callAndWait(Hooks.Event.SHUTDOWN);
        ledger.close();
        worker.metrics.flushAndWait(this, SHORT);
        beat();
    }

    /**
     * Gives the broker time for the last acknowledgements before the connection is closed. Does not
     * wait if the connection is lost, or after a second stop.
     */
    private void awaitAcks() {
        if (worker.pools.stream().anyMatch(pool -> pool.prefetch() > FEW_ACKS)) {
            Waits.firstOf(ACK_TIME, lost, worker.hurried);
        }
    }

    private void end(List<Thread> parts) {
        ended.complete(null);
        worker.metrics.detach(this);
        link.close(SHORT);
        lost.complete(new Lost(new TimeoutException("the connection did not close in time")));
        for (Thread part : parts) {
            try {
                part.join(SHORT.toMillis());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private boolean isOver() {
        return lost.isDone() || ended.isDone();
    }

    /**
     * Consumes a lane's queues until the connection is lost. Opens a new channel when one is lost.
     */
    private void serve(Pool pool) {
        Waits.Pauses pauses = new Waits.Pauses();
        while (!isOver()) {
            long started = System.nanoTime();
            String why = attach(pool);
            if (isOver()) {
                return;
            }
            if (System.nanoTime() - started > Waits.LONGEST_PAUSE.toNanos()) {
                pauses = new Waits.Pauses();
            }
            worker.log.warn("millrace: lane {} lost its channel, it opens another: {}", pool.lane.name, why);
            Waits.firstOf(pauses.next(), lost, ended);
        }
    }

    private String attach(Pool pool) {
        Attachment attachment = null;
        try {
            attachment = new Attachment(this, pool);
            pool.attach(attachment);
            return attachment.run();
        } catch (Lost e) {
            return e.getMessage();
        } catch (RuntimeException | Error e) {
            // Our own fault, or a lack of memory, must not end a lane.
            worker.log.error("millrace: a lane failed", e);
            return e.toString();
        } finally {
            pool.attach(null);
            if (attachment != null) {
                attachment.close();
            }
        }
    }

    /** Returns whether a queue exists, after declaring a missing one. */
    boolean ensureQueue(String name) throws Lost {
        String full = Wire.QUEUE_PREFIX + name;
        if (link.exists(full)) {
            return true;
        }
        if (worker.declare) {
            try {
                link.declare(full);
            } catch (Lost e) {
                worker.log.warn("millrace: {} could not be declared: {}", full, e.getMessage());
            }
            if (link.exists(full)) {
                return true;
            }
        }
        worker.log.warn("millrace: queue {} does not exist yet", name);
        return false;
    }

    private void beats() {
        while (!isOver()) {
            CompletableFuture<Void> due = worker.nextBeat();
            try {
                beat();
            } catch (RuntimeException | Error e) { // the next one may have memory again
                worker.log.error("millrace: no heartbeat", e);
            }
            Waits.firstOf(worker.heartbeat, due, lost, ended);
        }
    }

    private void beat() {
        long start = System.nanoTime();
        try {
            publisher.publish(Message.record(Wire.HEARTBEATS, Json.write(Heartbeat.of(worker, rttMicros))), SHORT);
            rttMicros = (System.nanoTime() - start) / 1000;
        } catch (Lost | RefusedException | TimeoutException e) {
            rttMicros = 0;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Waits for an event, at most for an hour, because no wait is unlimited. */
    static boolean await(CompletableFuture<?>... events) {
        return Waits.firstOf(HOUR, events);
    }
}
