package io.github.millracejobs;

import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A job to enqueue. Its options are set one by one: {@code NewJob.of("Mail",
 * "ann@example.com").queue("critical").priority(9)}.
 */
public final class NewJob {
    private String className;
    private List<?> args;
    private Double at;
    private String queue = Wire.DEFAULT_QUEUE;
    private String jid;
    private int priority;
    private String traceparent;
    private boolean limited;
    private String limitKey = "";
    private Unique unique;
    private final Map<String, Object> options = new LinkedHashMap<>();
    private final Map<String, Object> fields = new LinkedHashMap<>();

    private NewJob(String className, List<?> args) {
        this.className = className;
        this.args = args;
    }

    /**
     * {@return a job of a class} Arguments are values that JSON has (texts, numbers, booleans,
     * null, lists, arrays and maps of them) and values that the client's {@link Codec} knows, such
     * as records.
     */
    public static NewJob of(String className, Object... args) {
        return new NewJob(className, args == null ? Collections.singletonList(null) : Arrays.asList(args));
    }

    /** {@return a job of a class, with its arguments in a list} */
    public static NewJob withArgs(String className, List<?> args) {
        return new NewJob(className, args);
    }

    /** {@return its class} */
    public String className() {
        return className;
    }

    /** {@return its arguments} */
    public List<?> args() {
        return args;
    }

    /** Replaces the arguments, for middleware. */
    public NewJob args(List<?> others) {
        this.args = others;
        return this;
    }

    /** {@return its queue} */
    public String queue() {
        return queue;
    }

    /** Sets the queue; the default is {@code default}. */
    public NewJob queue(String name) {
        this.queue = name;
        return this;
    }

    /** {@return when it is due, or null for immediately} */
    public Instant at() {
        return at == null ? null : Instant.ofEpochSecond(0, Math.round(at * 1e6) * 1000);
    }

    /** Schedules it. If the time is past, it is due immediately. */
    public NewJob at(Instant time) {
        this.at = seconds(time);
        return this;
    }

    /** Schedules it, after some time from now. */
    public NewJob in(Duration delay) {
        return at(Instant.now().plus(delay));
    }

    /** Sets the maximum of retries; the default is 25. */
    public NewJob retry(long times) {
        options.put("retry", times);
        return this;
    }

    /** Sets whether it is retried at all. */
    public NewJob retry(boolean again) {
        options.put("retry", again);
        return this;
    }

    /** Sets the priority, 0 to 10, the highest first. */
    public NewJob priority(int value) {
        this.priority = value;
        options.put("priority", value);
        return this;
    }

    /** Sets tags by which to find it. */
    public NewJob tags(String... tags) {
        options.put("tags", List.of(tags));
        return this;
    }

    /**
     * Sets whether the limits that are about its queue and class count it. A job with a {@link
     * #limitKey} is limited anyway.
     */
    public NewJob limited(boolean counted) {
        this.limited = counted;
        return this;
    }

    /** Sets what limits per key count it under, such as a customer: at most 200 bytes. Null and "" are none. */
    public NewJob limitKey(String key) {
        this.limitKey = key == null ? "" : key;
        return this;
    }

    /** {@return what makes it unique, or null} */
    public Unique unique() {
        return unique;
    }

    /**
     * Makes other jobs with the same key duplicates, which do not run. {@link Unique#of} is for jobs
     * with the same class, queue and args. Null is none.
     */
    public NewJob unique(Unique what) {
        this.unique = what;
        return this;
    }

    /** {@return a copy, unique by the defaults if this job is not unique} */
    public NewJob asUnique() {
        NewJob copy = copy();
        return unique == null ? copy.unique(Unique.of()) : copy;
    }

    private boolean isGated() {
        return limited || !limitKey.isEmpty() || unique != null;
    }

    private Map<String, Object> gate() {
        Map<String, Object> gate = new LinkedHashMap<>();
        if (!limitKey.isEmpty()) {
            gate.put("key", limitKey);
        }
        if (unique != null) {
            gate.put("unique", unique.member());
            if (at != null) { // a unique job waits in jobs.gated until it is due
                gate.put("at", Json.time(at));
            }
        }
        return gate;
    }

    /** {@return its id, or null for a random one} */
    public String jid() {
        return jid;
    }

    /** Sets its id; the default is a random one. */
    public NewJob jid(String id) {
        this.jid = id;
        return this;
    }

    /** Sets when it expires: if it has not begun by then, it is given up. */
    public NewJob expiresAt(Instant time) {
        options.put("expires_at", Json.time(seconds(time)));
        return this;
    }

    /** Sets how long it may run. */
    public NewJob timeout(Duration limit) {
        options.put("timeout", limit.toMillis() / 1000.0);
        return this;
    }

    /** Sets whether it becomes a dead job when it is given up. Otherwise it is dropped. */
    public NewJob dead(boolean keep) {
        options.put("dead", keep);
        return this;
    }

    /**
     * Sets how many lines of a backtrace are kept when it fails, at most 100. The default is 20; 0
     * keeps none.
     */
    public NewJob backtrace(int lines) {
        options.put("backtrace", lines);
        return this;
    }

    /** Sets whether a backtrace is kept when it fails; true: 100 lines. */
    public NewJob backtrace(boolean keep) {
        options.put("backtrace", keep);
        return this;
    }

    /** Adds a member of your own to the job. */
    public NewJob field(String name, Object value) {
        fields.put(name, value);
        return this;
    }

    /** {@return its trace context, or null} */
    public String traceparent() {
        return traceparent;
    }

    /** Sets its trace context. */
    public NewJob traceparent(String context) {
        this.traceparent = context;
        return this;
    }

    /** Returns whether it has what each tick of a periodic job sets. */
    boolean isOfOneTick() {
        return jid != null || at != null || traceparent != null || options.containsKey("expires_at");
    }

    /**
     * Checks and encodes it, with the default codec, for the first attempt. Throws InvalidException
     * if it breaks a rule.
     */
    Publishing prepare(double now) {
        return prepare(now, 0, Codec.standard());
    }

    /** Checks and encodes it. Throws InvalidException if it breaks a rule. */
    Publishing prepare(double now, long retryCount, Codec codec) {
        try {
            return write(now, retryCount, codec);
        } catch (IllegalArgumentException e) {
            throw new InvalidException(className + ": " + e.getMessage(), e);
        }
    }

    private Publishing write(double now, long retryCount, Codec codec) {
        check();
        String id = jid == null || jid.isEmpty() ? Keys.random(16) : jid;
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("jid", id);
        members.put("class", className);
        members.put("args", args);
        members.put("queue", queue);
        members.put("retry_count", retryCount);
        members.put(at == null ? "enqueued_at" : "created_at", Json.time(now));
        members.putAll(options);
        if (isGated()) {
            members.put("gate", gate());
        }
        members.putAll(fields);
        byte[] job = Json.write(members, codec);
        boolean scheduled = at != null && unique == null;
        byte[] body = scheduled ? scheduled(id, job) : job;
        if (body.length > Wire.MAX_RECORD) {
            throw new IllegalArgumentException("it has " + body.length + " bytes, at most " + Wire.MAX_RECORD + " are allowed");
        }
        boolean direct = at == null && !isGated();
        String key = direct ? queue : scheduled ? Wire.SCHEDULED : Wire.GATED;
        Message message = new Message(direct ? Wire.DIRECT : "", key, body, Wire.property(id),
                Wire.property(className), priority, Wire.traceHeaders(traceparent));
        return new Publishing(id, queue, job, at, message);
    }

    private byte[] scheduled(String id, byte[] job) {
        Map<String, Object> head = new LinkedHashMap<>();
        head.put("type", "scheduled_job");
        head.put("jid", id);
        head.put("scheduled_at", Json.time(at));
        return splice(Json.write(head), job);
    }

    private void check() {
        if (className == null || className.isEmpty()) {
            throw new IllegalArgumentException("class is empty");
        }
        if (args == null) {
            throw new IllegalArgumentException("args is null");
        }
        Wire.checkQueue(queue);
        if (className.equals(NewMessage.CLASS) && !queue.equals(NewMessage.QUEUE)) {
            throw new IllegalArgumentException("a message waits in the queue " + NewMessage.QUEUE + ", not in " + queue);
        }
        if (className.equals(NewMessage.CLASS) && isGated()) {
            throw new IllegalArgumentException("a delayed message cannot be limited or unique");
        }
        Wire.checkName("limit key", limitKey);
        if (priority < 0 || priority > Wire.MAX_PRIORITY) {
            throw new IllegalArgumentException("priority must be from 0 to " + Wire.MAX_PRIORITY);
        }
        if (options.get("retry") instanceof Long times && (times < 0 || times > Wire.MAX_COUNT)) {
            throw new IllegalArgumentException("retry must be from 0 to " + Wire.MAX_COUNT);
        }
        if (options.get("timeout") instanceof Double seconds && seconds <= 0) {
            throw new IllegalArgumentException("timeout must be above 0");
        }
        for (String name : fields.keySet()) {
            if (Wire.JOB_MEMBERS.contains(name)) {
                throw new IllegalArgumentException("field " + name + " is named by the format: there is an option for it, or it is not yours");
            }
        }
    }

    private static double seconds(Instant time) {
        return time.getEpochSecond() + time.getNano() / 1e9;
    }

    /** Splices a job, byte for byte, into the head of a record. */
    static byte[] splice(byte[] head, byte[] job) {
        byte[] member = {',', '"', 'j', 'o', 'b', '"', ':'};
        ByteArrayOutputStream out = new ByteArrayOutputStream(head.length + member.length + job.length);
        out.write(head, 0, head.length - 1);
        out.writeBytes(member);
        out.writeBytes(job);
        out.write('}');
        return out.toByteArray();
    }

    /** Returns a copy, so that changes by middleware do not change the caller's job. */
    NewJob copy() {
        NewJob copy = new NewJob(className, args == null ? null : new ArrayList<>(args));
        copy.at = at;
        copy.queue = queue;
        copy.jid = jid;
        copy.priority = priority;
        copy.traceparent = traceparent;
        copy.limited = limited;
        copy.limitKey = limitKey;
        copy.unique = unique;
        copy.options.putAll(options);
        copy.fields.putAll(fields);
        return copy;
    }
}
