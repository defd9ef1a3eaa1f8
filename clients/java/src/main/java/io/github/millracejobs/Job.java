package io.github.millracejobs;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** What a handler works on. */
public final class Job {
    final Members members;

    private final byte[] raw;
    private final String jid;
    private final String queue;
    private final Map<String, Object> headers;
    private final Double sent;
    private final Object lock = new Object();
    private volatile boolean stopping;
    private volatile End end;

    /** Why a handler should end now. */
    enum End { CANCELLED, TIMEOUT, STOPPING }

    private Job(byte[] raw, Members members, String jid, String queue, Map<String, Object> headers, Double sent) {
        this.raw = raw;
        this.members = members;
        this.jid = jid;
        this.queue = queue;
        this.headers = headers;
        this.sent = sent;
    }

    /** Reads a delivery; {@code sent} is the message's timestamp, or null. */
    static Job read(byte[] raw, String queue, Map<String, Object> headers, String messageId, Double sent) throws Unreadable {
        Members members = Members.read(raw);
        String jid = members.jid();
        if (jid.isEmpty()) {
            jid = messageId == null || messageId.isEmpty() ? Keys.hash(raw, 12) : messageId;
        }
        return new Job(raw, members, jid, queue, headers == null ? Map.of() : headers, sent);
    }

    /** {@return the job as a worker would get it} For tests; throws InvalidException as a client would. */
    public static Job of(NewJob job) {
        Publishing publishing = job.prepare(Wire.now());
        try {
            return read(publishing.job(), publishing.queue(), publishing.message().headers(), publishing.jid(), null);
        } catch (Unreadable e) {
            throw new InvalidException(e.getMessage(), e);
        }
    }

    /** {@return the job's id} */
    public String jid() {
        return jid;
    }

    /** {@return what it is, by which its handler is found} */
    public String className() {
        return members.className();
    }

    /**
     * {@return the arguments} Texts are Strings, whole numbers Long (BigInteger beyond that), others Double (BigDecimal where that would be
     * infinite), objects Maps, arrays Lists. Usually it is a List; a job without arguments has an empty one.
     */
    public Object args() {
        return members.args();
    }

    /** {@return one of the arguments, as the type that is wanted} A ClassCastException or IndexOutOfBoundsException is the job's failure. */
    @SuppressWarnings("unchecked")
    public <T> T arg(int index) {
        return (T) ((List<?>) members.args()).get(index);
    }

    /** {@return the arguments as they were enqueued, for a JSON library} */
    public String argsJson() {
        return members.argsJson();
    }

    /** {@return which attempt this is, from 1} */
    public long attempt() {
        return members.retryCount() + 1;
    }

    /** {@return how often it has failed} */
    public long retryCount() {
        return members.retryCount();
    }

    /** {@return the queue that it came from} */
    public String queue() {
        return queue;
    }

    /** {@return its priority, 0 to 10} */
    public int priority() {
        return members.priority();
    }

    /** {@return its tags} */
    public List<String> tags() {
        return members.tags();
    }

    /** {@return the message's headers; texts are Strings} */
    public Map<String, Object> headers() {
        return headers;
    }

    /** {@return the trace context that came with it, or null} */
    public String traceparent() {
        return headers.get(Wire.TRACEPARENT) instanceof String text ? text : null;
    }

    /** {@return the job byte for byte} */
    public byte[] raw() {
        return raw.clone();
    }

    /** {@return whether the worker is stopping} The handler may go on until the worker's stop timeout is over. */
    public boolean isStopping() {
        return stopping;
    }

    /** {@return whether the handler should end now: the job was cancelled, or its timeout or the worker's stop timeout is over} */
    public boolean isCancelled() {
        return end != null;
    }

    /**
     * Sleeps, but no longer than until the job is to end.
     *
     * @return whether it is: stopping or cancelled
     * @throws InterruptedException somebody interrupted the thread; the library does not
     */
    public boolean await(Duration time) throws InterruptedException {
        long until = System.nanoTime() + time.toNanos();
        synchronized (lock) {
            while (!stopping && end == null) {
                long left = until - System.nanoTime();
                if (left <= 0) {
                    return false;
                }
                lock.wait(left / 1_000_000 + 1);
            }
            return true;
        }
    }

    void tellStopping() {
        synchronized (lock) {
            stopping = true;
            lock.notifyAll();
        }
    }

    void tellEnd(End why) {
        synchronized (lock) {
            end = end == null ? why : end;
            lock.notifyAll();
        }
    }

    End end() {
        return end;
    }

    byte[] bytes() {
        return raw;
    }

    /** When it was enqueued, in seconds since the epoch, or null. */
    Double enqueuedAt() {
        return members.enqueuedAt() == null ? sent : members.enqueuedAt();
    }

    boolean isExpired(double now) {
        return members.expiresAt() != null && members.expiresAt() < now;
    }

    @Override
    public String toString() {
        return "job " + jid + " of class " + className() + ": " + new String(raw, 0, Math.min(raw.length, 200), StandardCharsets.UTF_8);
    }
}
