package io.github.millracejobs;

import java.lang.invoke.MethodType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** A job, as its handler gets it. */
public final class Job {
    final Members members;

    private final byte[] raw;
    private final String jid;
    private final String queue;
    private final Map<String, Object> headers;
    private final Double sent;
    private final Lock lock = new ReentrantLock(); // a monitor would pin a virtual thread
    private final Condition signalled = lock.newCondition();
    private Codec codec = Codec.standard();
    // The program's own members, after the first request for them.
    private volatile Map<String, String> fields;
    private volatile boolean stopping;
    private volatile End end;

    /** Why a handler should end now. */
    public enum End {
        /** The job was cancelled. If it fails now, it is discarded. */
        CANCELLED,
        /** Its timeout is over. */
        TIMEOUT,
        /** The worker's stop timeout is over. If the job fails now, it goes back to its queue. */
        STOPPING
    }

    private Job(byte[] raw, Members members, String jid, String queue, Map<String, Object> headers, Double sent) {
        this.raw = raw;
        this.members = members;
        this.jid = jid;
        this.queue = queue;
        this.headers = headers;
        this.sent = sent;
    }

    /** Reads a delivery. {@code sent} is the message's timestamp, or null. */
    static Job read(byte[] raw, String queue, Map<String, Object> headers, String messageId, Double sent) throws Unreadable {
        Members members = Members.read(raw);
        String jid = members.jid();
        if (jid.isEmpty()) {
            jid = messageId == null || messageId.isEmpty() ? Keys.hash(raw, 12) : messageId;
        }
        return new Job(raw, members, jid, queue, headers == null ? Map.of() : headers, sent);
    }

    /**
     * {@return the job as a worker would get it} For tests. Throws InvalidException as a client
     * would.
     */
    public static Job of(NewJob job) {
        return of(job, 0, Codec.standard());
    }

    static Job of(NewJob job, long retryCount, Codec codec) {
        Publishing publishing = job.prepare(Wire.now(), retryCount, codec);
        try {
            return read(publishing.job(), publishing.queue(), publishing.message().headers(), publishing.jid(), null).use(codec);
        } catch (Unreadable e) {
            throw new InvalidException(e.getMessage(), e);
        }
    }

    /** Sets the codec. Called before the handler gets the job. */
    Job use(Codec other) {
        codec = other;
        return this;
    }

    /** {@return the job's id} */
    public String jid() {
        return jid;
    }

    /** {@return the class of the job, which selects its handler} */
    public String className() {
        return members.className();
    }

    /**
     * {@return the arguments} Texts are Strings, whole numbers Long (BigInteger beyond that),
     * others Double (BigDecimal where that would be infinite), objects Maps, arrays Lists. The
     * result is usually a List. A job without arguments has an empty one.
     */
    public Object args() {
        return members.args();
    }

    /**
     * {@return one of the arguments, plain, as in {@link #args}} Throws ArgumentException if there
     * is none, which is the job's failure.
     */
    public Object arg(int index) {
        if (!(members.args() instanceof List<?> list)) {
            throw new ArgumentException("args of class " + className() + " is no array", null);
        }
        if (index < 0 || index >= list.size()) {
            throw missing(index, list.size());
        }
        return list.get(index);
    }

    /**
     * {@return one of the arguments as a type: a text, a number, a boolean, an enum, a record, or
     * another type that the worker's {@link Codec} knows} Throws ArgumentException if there is none
     * or it does not fit, which is the job's failure.
     */
    public <T> T arg(int index, Class<T> type) {
        return decode("argument " + index, argJson(index), type, type);
    }

    /**
     * {@return one of the arguments as a type that may be generic, such as the one of a method's
     * parameter} Throws ArgumentException, as {@link #arg(int, Class)} does.
     */
    public Object arg(int index, Type type) {
        if (type instanceof Class<?> plain) {
            return arg(index, plain);
        }
        Class<?> as = type instanceof ParameterizedType generic ? (Class<?>) generic.getRawType() : Object.class;
        return decode("argument " + index, argJson(index), as, type);
    }

    /**
     * {@return one of the arguments as a type, or another value if there is no such argument or it
     * is null} So jobs that were enqueued before the argument was added still run.
     */
    public <T> T arg(int index, Class<T> type, T otherwise) {
        String json = members.argJson(index);
        return json == null || json.equals("null") ? otherwise : decode("argument " + index, json, type, type);
    }

    /**
     * {@return one of the arguments as a list} Throws ArgumentException, as {@link #arg(int,
     * Class)} does.
     */
    public <T> List<T> argList(int index, Class<T> of) {
        return decode("argument " + index, argJson(index), List.class, new ListOf(of));
    }

    private String argJson(int index) {
        String json = members.argJson(index);
        if (json == null) {
            arg(index); // throws, and says what is missing
        }
        return json;
    }

    private ArgumentException missing(int index, int size) {
        return new ArgumentException("argument " + index + " of class " + className() + " is missing: the job has " + size, null);
    }

    /**
     * {@return the program's own members of the job, plain, such as a tenant} {@link NewJob#field}
     * sets them.
     */
    public Map<String, Object> fields() {
        Map<String, Object> fields = new LinkedHashMap<>();
        ownFields().forEach((name, json) -> fields.put(name, decode("field " + name, json, Object.class, Object.class)));
        return fields;
    }

    /**
     * {@return one of the program's own members as a type, or null if there is none} Throws
     * ArgumentException if it does not fit.
     */
    public <T> T field(String name, Class<T> type) {
        String json = ownFields().get(name);
        return json == null ? null : decode("field " + name, json, type, type);
    }

    private Map<String, String> ownFields() {
        if (fields == null) {
            fields = members.fields();
        }
        return fields;
    }

    @SuppressWarnings("unchecked")
    private <T> T decode(String what, String json, Class<?> as, Type type) {
        Object value;
        try {
            value = type == Object.class ? StandardCodec.INSTANCE.decode(json, type) : codec.decode(json, type);
        } catch (RuntimeException e) {
            throw new ArgumentException(what + " of class " + className() + " does not fit: " + e.getMessage(), e);
        }
        Class<?> box = MethodType.methodType(as).wrap().returnType();
        if (value == null && as.isPrimitive() || value != null && !box.isInstance(value)) {
            throw new ArgumentException(what + " of class " + className() + " does not fit: the codec gave "
                    + (value == null ? "null" : "a " + value.getClass().getName()) + ", not " + as.getName(), null);
        }
        return (T) value;
    }

    private record ListOf(Class<?> of) implements ParameterizedType {
        @Override
        public Type[] getActualTypeArguments() {
            return new Type[] {of};
        }

        @Override
        public Type getRawType() {
            return List.class;
        }

        @Override
        public Type getOwnerType() {
            return null;
        }
    }

    /** {@return the arguments as they were enqueued, for a JSON library} */
    public String argsJson() {
        return members.argsJson();
    }

    /** {@return the number of this attempt, from 1} */
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

    /** {@return whether limits count it} */
    public boolean isLimited() {
        return members.limited();
    }

    /** {@return the key that limits count it under, or null if it has none} */
    public String limitKey() {
        return members.limitKey();
    }

    /** {@return the message's headers; texts are Strings} */
    public Map<String, Object> headers() {
        return headers;
    }

    /** {@return the trace context that came with it, or null} */
    public String traceparent() {
        return headers.get(Wire.TRACEPARENT) instanceof String text && Wire.traceHeaders(text) != null ? text : null;
    }

    /** {@return the body of the job, byte for byte} */
    public byte[] raw() {
        return raw.clone();
    }

    /**
     * {@return whether the worker is stopping} The handler may continue until the worker's stop
     * timeout is over.
     */
    public boolean isStopping() {
        return stopping;
    }

    /**
     * {@return whether the handler should end now: the job was cancelled, or its timeout or the
     * worker's stop timeout is over}
     */
    public boolean isCancelled() {
        return end != null;
    }

    /** {@return why the handler should end now, or null if it may continue} */
    public End end() {
        return end;
    }

    /**
     * Sleeps for some time, but ends earlier when the job should end.
     *
     * @return whether the job should end: stopping or cancelled
     * @throws InterruptedException the thread was interrupted; the library does not interrupt it
     */
    public boolean await(Duration time) throws InterruptedException {
        long left = time.toNanos();
        lock.lockInterruptibly();
        try {
            while (!stopping && end == null) {
                if (left <= 0) {
                    return false;
                }
                left = signalled.awaitNanos(left);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    void signalStopping() {
        signal(() -> stopping = true);
    }

    void signalEnd(End why) {
        signal(() -> end = end == null ? why : end);
    }

    private void signal(Runnable change) {
        lock.lock();
        try {
            change.run();
            signalled.signalAll();
        } finally {
            lock.unlock();
        }
    }

    byte[] bytes() {
        return raw;
    }

    /** Returns when it was enqueued, in seconds since the epoch, or null. */
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
