package io.github.millracejobs;

import java.util.Iterator;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Jobs that are published together, again and again on new connections until each is answered. */
final class Batch {
    private final Line line;
    private final long deadline;
    private final String[] jids;
    private final SortedMap<Integer, MillraceException> errors = new TreeMap<>();
    private final Map<Integer, One> open = new TreeMap<>();

    /** A job that is not answered yet. */
    private static final class One {
        private final Publishing publishing;
        private Publisher.Answer answer; // that it waits for
        private boolean sent;

        One(Publishing publishing) {
            this.publishing = publishing;
        }
    }

    Batch(Line line, int size, long deadline) {
        this.line = line;
        this.deadline = deadline;
        this.jids = new String[size];
    }

    void add(int index, NewJob job) {
        try {
            open.put(index, new One(job.prepare(Wire.now())));
        } catch (InvalidException e) {
            errors.put(index, e);
        }
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
                open.keySet().forEach(index -> errors.put(index, e));
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
        for (One one : open.values()) {
            one.answer = null;
        }
        for (One one : open.values()) {
            one.answer = publisher.send(one.publishing.message(), deadline);
        }
    }

    /** Waits for the answers. What was lost stays open: it is published again. */
    private void collect(Throwable why) throws InterruptedException {
        for (Iterator<Map.Entry<Integer, One>> all = open.entrySet().iterator(); all.hasNext(); ) {
            Map.Entry<Integer, One> entry = all.next();
            One one = entry.getValue();
            int index = entry.getKey();
            try {
                if (one.answer != null) {
                    one.answer.get(deadline);
                    jids[index] = one.publishing.jid();
                    all.remove();
                } else if (why instanceof TimeoutException) {
                    errors.put(index, Client.late(one.sent, why));
                    all.remove();
                }
            } catch (RefusedException e) {
                errors.put(index, e);
                all.remove();
            } catch (Lost e) {
                one.sent |= one.answer.isSent();
                if (line.isClosed()) {
                    errors.put(index, new ClosedException("the client was closed", e));
                    all.remove();
                }
            } catch (TimeoutException e) {
                errors.put(index, Client.late(one.sent || one.answer.isSent(), e));
                all.remove();
            }
        }
    }

    /** Nothing more can be done for what is open. */
    void fail(Throwable why) {
        open.forEach((index, one) -> errors.put(index, Client.late(one.sent || one.answer != null && one.answer.isSent(), why)));
        open.clear();
    }

    String[] jids() {
        return jids;
    }

    SortedMap<Integer, MillraceException> errors() {
        return errors;
    }
}
