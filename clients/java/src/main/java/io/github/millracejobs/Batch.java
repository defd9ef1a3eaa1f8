package io.github.millracejobs;

import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;

/**
 * Jobs that are published together, repeatedly, until the broker has each of them or refuses it. It
 * also publishes returned jobs again: RabbitMQ returns a message while its stream has no leader, as
 * in the moments after a restart.
 */
final class Batch {
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(1); // between two tries
    // The time before the deadline in which no try begins.
    private static final Duration ANSWER_TIME = Duration.ofMillis(500);

    private final Line line;
    private final Codec codec;
    private final long began = System.nanoTime();
    private final long deadline;
    private final SortedMap<Integer, MillraceException> errors = new TreeMap<>();
    private final List<One> open = new LinkedList<>();

    /** A job that is not answered yet. */
    private static final class One {
        private final int index;
        private final Publishing publishing;
        private Publisher.Answer answer; // the pending answer
        private RefusedException returned; // the broker's answer, if the job was returned
        private boolean sent;
        private final boolean asks;
        private CompletableFuture<Map<String, Object>> reply; // of the leader, if the job asks for one

        One(int index, Publishing publishing, boolean asks) {
            this.index = index;
            this.publishing = publishing;
            this.asks = asks;
        }

        boolean isSent() {
            return sent || answer != null && answer.isSent();
        }
    }

    Batch(Line line, Codec codec, long deadline) {
        this.line = line;
        this.codec = codec;
        this.deadline = deadline;
    }

    /**
     * Checks a job, and returns its jid. A later error is stored under the index. Throws
     * InvalidException if the job breaks a rule.
     */
    String add(int index, NewJob job) {
        Publishing publishing = job.prepare(Wire.now(), 0, codec);
        open.add(new One(index, publishing, false));
        return publishing.jid();
    }

    /**
     * Publishes one job, and waits until the leader has decided about it. It is not published again
     * after the confirm: it may have run already.
     */
    Decision decide(NewJob job) throws InterruptedException {
        One one = new One(0, job.prepare(Wire.now(), 0, codec), true);
        open.add(one);
        publish();
        if (!errors.isEmpty()) {
            throw errors.get(0);
        }
        Duration left = Duration.ofNanos(Math.max(deadline - System.nanoTime(), 0));
        return Decision.await(one.reply, one.publishing.jid(), left, line.closed());
    }

    /** Publishes all jobs, and waits for the answers until the deadline. */
    void publish() throws InterruptedException {
        Waits.Pauses pauses = new Waits.Pauses(LONGEST_PAUSE);
        while (!open.isEmpty()) {
            Publisher publisher = null;
            Throwable why = null;
            open.forEach(one -> one.returned = null);
            try {
                publisher = line.publisher(deadline);
                send(publisher);
            } catch (TimeoutException e) {
                why = e; // jobs that were sent may still be answered in time
            } catch (Lost e) {
                if (publisher == null) {
                    fail(e);
                    return;
                }
                why = e;
            } catch (ClosedException e) {
                open.forEach(one -> errors.putIfAbsent(one.index, closed(one, e)));
                return;
            }
            collect(why);
            if (publisher != null && publisher.lost.isDone()) {
                line.forget(publisher);
            }
            Duration pause = pauses.next();
            Duration left = Duration.ofNanos(Math.max(deadline - System.nanoTime(), 0));
            if (pause.plus(ANSWER_TIME).compareTo(left) > 0) {
                refuseReturned();
            }
            if (!open.isEmpty()) {
                line.pause(pause.compareTo(left) < 0 ? pause : left);
            }
        }
    }

    /** Gives up the returned jobs. */
    private void refuseReturned() {
        for (Iterator<One> all = open.iterator(); all.hasNext(); ) {
            One one = all.next();
            if (one.returned != null) {
                all.remove();
                errors.putIfAbsent(one.index, refused(one));
            }
        }
    }

    private void send(Publisher publisher) throws Lost, TimeoutException, InterruptedException {
        for (One one : open) {
            one.answer = null;
        }
        for (One one : open) {
            one.reply = one.asks ? new CompletableFuture<>() : null;
            one.answer = publisher.send(one.publishing.message(), deadline, one.reply);
        }
    }

    /** Waits for the answers. Lost and returned jobs stay open, and are published again. */
    private void collect(Throwable why) throws InterruptedException {
        for (Iterator<One> all = open.iterator(); all.hasNext(); ) {
            One one = all.next();
            MillraceException error = null;
            try {
                if (one.answer != null) {
                    one.answer.get(deadline);
                } else if (why instanceof TimeoutException) {
                    error = late(one, why);
                } else {
                    continue;
                }
            } catch (RefusedException e) {
                if (e.isReturned()) {
                    one.answer = null;
                    one.returned = e;
                    continue;
                }
                error = e;
            } catch (Lost e) {
                one.sent |= one.answer.isSent();
                if (why instanceof TimeoutException) {
                    error = late(one, why); // no new connection came in time
                } else if (line.isClosed()) {
                    error = closed(one, new ClosedException("the client was closed", e));
                } else {
                    continue;
                }
            } catch (TimeoutException e) {
                error = late(one, e);
            }
            all.remove();
            if (error != null) {
                errors.putIfAbsent(one.index, error);
            }
        }
    }

    /** Ends all open jobs with an error. */
    void fail(Throwable why) {
        open.forEach(one -> errors.putIfAbsent(one.index, late(one, why)));
        open.clear();
    }

    /** Returns the error of a job whose deadline has passed. */
    private MillraceException late(One one, Throwable why) {
        if (one.returned != null) {
            return refused(one);
        }
        boolean hasReason = why.getMessage() != null && (why instanceof Lost || why.getCause() instanceof Lost);
        String text = hasReason ? why.getMessage() : "the deadline passed";
        return one.isSent() ? unconfirmed(one, text, why) : new UnreachableException("broker not reached: " + text, why);
    }

    /** Returns the error of a job whose last try was returned too. */
    private MillraceException refused(One one) {
        String text = one.returned.getMessage() + String.format(Locale.ROOT, "; tried for %.1f s", (System.nanoTime() - began) / 1e9);
        return one.isSent() ? unconfirmed(one, text, one.returned) : new RefusedException(text, one.returned);
    }

    /**
     * Returns the error of a job after the client was closed. A job that was sent may have arrived.
     */
    private static MillraceException closed(One one, ClosedException why) {
        return one.isSent() ? unconfirmed(one, "the client was closed before the broker answered", why) : why;
    }

    private static UnconfirmedException unconfirmed(One one, String text, Throwable why) {
        String jid = one.publishing.jid();
        return new UnconfirmedException(jid, "job " + jid + " is not confirmed: " + text, why);
    }

    SortedMap<Integer, MillraceException> errors() {
        return errors;
    }
}
