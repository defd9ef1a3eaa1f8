package io.github.millracejobs;

import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;

/**
 * Jobs that are published together, again and again until the broker has each or refuses it. What it returns is tried again too: RabbitMQ
 * returns what is meant for a stream that has no leader yet, as in the moments after a restart.
 */
final class Batch {
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(1); // between two tries
    private static final Duration ANSWER_TIME = Duration.ofMillis(500); // that a try of what was returned must leave for the answer

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
        private Publisher.Answer answer; // that it waits for
        private RefusedException returned; // the broker's answer, if that is why it is tried again
        private boolean sent;

        One(int index, Publishing publishing) {
            this.index = index;
            this.publishing = publishing;
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

    /** Checks a job, and returns its jid. Its error will be found under the index. InvalidException: it breaks a rule. */
    String add(int index, NewJob job) {
        Publishing publishing = job.prepare(Wire.now(), 0, codec);
        open.add(new One(index, publishing));
        return publishing.jid();
    }

    /** Publishes all and waits for all, as long as the deadline allows. */
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
                why = e; // what was sent in time may still be answered in time
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

    /** Gives up what the broker has returned. */
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
            one.answer = publisher.send(one.publishing.message(), deadline);
        }
    }

    /** Waits for the answers. What was lost or returned stays open: it is published again. */
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

    /** Nothing more can be done for what is open. */
    void fail(Throwable why) {
        open.forEach(one -> errors.putIfAbsent(one.index, late(one, why)));
        open.clear();
    }

    /** The error of a job whose time is over. */
    private MillraceException late(One one, Throwable why) {
        if (one.returned != null) {
            return refused(one);
        }
        boolean hasReason = why.getMessage() != null && (why instanceof Lost || why.getCause() instanceof Lost);
        String text = hasReason ? why.getMessage() : "the deadline passed";
        return one.isSent() ? unconfirmed(one, text, why) : new UnreachableException("broker not reached: " + text, why);
    }

    /** The error of a job that was returned to the last. */
    private MillraceException refused(One one) {
        String text = one.returned.getMessage() + String.format(Locale.ROOT, "; tried for %.1f s", (System.nanoTime() - began) / 1e9);
        return one.isSent() ? unconfirmed(one, text, one.returned) : new RefusedException(text, one.returned);
    }

    /** The error of a job that the client was closed with. One that was sent may have arrived. */
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
