package io.github.millracejobs;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A producer's connection. It is made at the first use, and again when it was lost. */
final class Line {
    private static final Duration CLOSING = Duration.ofSeconds(2);

    private final Hosts hosts;
    private final boolean failFast;
    // Runs callbacks of the AMQP library; confirms do not use it.
    private final ExecutorService deliveries = Waits.callbacks("millrace producer callbacks", () -> { });
    private final CompletableFuture<Void> closed = new CompletableFuture<>();
    private Link link; // guarded by this, like the next three fields
    private Publisher publisher;
    private CompletableFuture<Publisher> connecting; // while an attempt runs
    private long wantedUntil;
    // After one connection, a refusal may come from a broker that is starting.
    private volatile boolean welcome;
    private volatile Lost why; // the error of the last attempt

    /** With {@code failFast}, a publish waits for one attempt to connect. */
    Line(Hosts hosts, boolean failFast) {
        this.hosts = hosts;
        this.failFast = failFast;
    }

    /**
     * Returns the open publisher, or waits for one.
     *
     * @throws Lost the broker refuses the client, or the line fails fast and is not connected
     * @throws TimeoutException the deadline passed
     */
    Publisher publisher(long deadline) throws Lost, TimeoutException, InterruptedException {
        CompletableFuture<Publisher> coming;
        synchronized (this) {
            checkOpen();
            if (publisher != null && !publisher.lost.isDone()) {
                return publisher;
            }
            wantedUntil = connecting == null || deadline > wantedUntil ? deadline : wantedUntil;
            if (connecting == null) {
                CompletableFuture<Publisher> attempt = new CompletableFuture<>();
                connecting = attempt;
                Waits.start("millrace producer connects", () -> connect(attempt));
            }
            coming = connecting;
        }
        try {
            return coming.get(Math.max(deadline - System.nanoTime(), 0), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            checkOpen();
            throw new Lost(e.getCause());
        } catch (TimeoutException e) {
            Lost last = why;
            throw last == null ? e : (TimeoutException) new TimeoutException(last.getMessage()).initCause(last);
        }
    }

    /** Returns the open connection, or waits for one, as {@link #publisher} does. */
    Link link(long deadline) throws Lost, TimeoutException, InterruptedException {
        publisher(deadline);
        synchronized (this) {
            checkOpen();
            if (link == null) {
                throw new Lost(new TimeoutException("connection lost"));
            }
            return link;
        }
    }

    /** Completes when the line is closed. */
    CompletableFuture<Void> closed() {
        return closed;
    }

    private void connect(CompletableFuture<Publisher> attempt) {
        Waits.Pauses pauses = new Waits.Pauses();
        while (!closed.isDone()) {
            try {
                Link opened = hosts.open("millrace producer " + Host.NAME + ":" + Host.PID, deliveries);
                connected(attempt, opened);
                return;
            } catch (Lost e) {
                why = e;
                if (failFast || e.isUnwelcome() && !welcome || !isWanted(e, attempt)) {
                    giveUp(e, attempt);
                    return;
                }
            } catch (RuntimeException e) { // our own fault, which must not leave them waiting
                giveUp(new Lost(e), attempt);
                return;
            }
            Waits.firstOf(pauses.next(), closed);
        }
        giveUp(new Lost(new TimeoutException("the client was closed")), attempt);
    }

    private void connected(CompletableFuture<Publisher> attempt, Link opened) throws Lost {
        Publisher ready;
        try {
            ready = new Publisher(opened);
        } catch (Lost e) {
            opened.close(CLOSING);
            throw e;
        }
        welcome = true;
        ready.lost.thenAccept(gone -> opened.lost.complete(gone));
        synchronized (this) {
            if (!closed.isDone()) {
                drop();
                link = opened;
                publisher = ready;
                connecting = null;
                attempt.complete(ready);
                return;
            }
        }
        opened.close(CLOSING);
        giveUp(new Lost(new TimeoutException("the client was closed")), attempt);
    }

    /** Returns whether a publish still waits for a connection. If not, the attempt ends here. */
    private synchronized boolean isWanted(Lost last, CompletableFuture<Publisher> attempt) {
        if (wantedUntil - System.nanoTime() > 0) {
            return true;
        }
        giveUp(last, attempt);
        return false;
    }

    private synchronized void giveUp(Lost last, CompletableFuture<Publisher> attempt) {
        if (connecting == attempt) {
            connecting = null;
        }
        attempt.completeExceptionally(last);
    }

    /** Drops a publisher whose channel is lost, and its connection. */
    synchronized void forget(Publisher gone) {
        if (publisher == gone) {
            drop();
        }
    }

    private void drop() {
        Link old = link;
        link = null;
        publisher = null;
        if (old != null) {
            Waits.start("millrace producer closes", () -> old.close(CLOSING));
        }
    }

    private void checkOpen() {
        if (closed.isDone()) {
            throw new ClosedException("the client was closed", null);
        }
    }

    void close() {
        Link old;
        synchronized (this) {
            closed.complete(null);
            // An attempt may last half a minute, and waiting publishes must end earlier.
            if (connecting != null) {
                giveUp(new Lost(new TimeoutException("the client was closed")), connecting);
            }
            old = link;
            link = null;
            publisher = null;
        }
        if (old != null) {
            old.close(CLOSING);
        }
    }

    boolean isClosed() {
        return closed.isDone();
    }

    /** Waits for some time, or until the line is closed. */
    void pause(Duration time) throws InterruptedException {
        try {
            closed.get(time.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException | ExecutionException e) {
            // The time is over.
        }
    }
}
