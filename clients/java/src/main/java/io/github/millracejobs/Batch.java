package io.github.millracejobs;

import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Jobs that are published together, again and again on new connections until each is answered. */
final class Batch {
    private final Line line;
    private final Codec codec;
    private final long deadline;
    private final SortedMap<Integer, MillraceException> errors = new TreeMap<>();
    private final List<One> open = new LinkedList<>();

    /** A job that is not answered yet. */
    private static final class One {
        private final int index;
        private final Publishing publishing;
        private Publisher.Answer answer; // that it waits for
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
        Waits.Pauses pauses = new Waits.Pauses();
        while (!open.isEmpty()) {
            Publisher publisher = null;
            Throwable why = null;
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
            if (!open.isEmpty()) {
                TimeUnit.NANOSECONDS.sleep(Math.min(pauses.next().toNanos(), Math.max(deadline - System.nanoTime(), 0)));
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

    /** Waits for the answers. What was lost stays open: it is published again. */
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
    private static MillraceException late(One one, Throwable why) {
        boolean hasReason = why.getMessage() != null && (why instanceof Lost || why.getCause() instanceof Lost);
        String text = hasReason ? why.getMessage() : "the deadline passed";
        return one.isSent() ? unconfirmed(one, text, why) : new UnreachableException("broker not reached: " + text, why);
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
