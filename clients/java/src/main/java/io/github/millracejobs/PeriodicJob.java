package io.github.millracejobs;

import java.time.Duration;
import java.time.ZoneId;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A job that the leader enqueues again and again. Either {@link #cron} or {@link #every} says when
 * it is due: {@code PeriodicJob.of("nightly-report", NewJob.of("Report", "daily")).cron("0 3 * * *")}.
 */
public final class PeriodicJob {
    private final String name;
    private final NewJob job;
    private final Map<String, Object> schedule = new LinkedHashMap<>();

    private PeriodicJob(String name, NewJob job) {
        this.name = name;
        this.job = job.copy();
    }

    /**
     * {@return a periodic job with a name, of 1 to 64 letters, digits, dots, hyphens and
     * underscores} The job may have all options but a jid, times and a trace context, which each
     * tick sets.
     */
    public static PeriodicJob of(String name, NewJob job) {
        return new PeriodicJob(name, job);
    }

    /** {@return its name} */
    public String name() {
        return name;
    }

    /**
     * Sets when it is due: five fields, such as {@code 0 3 * * *}, or {@code @hourly}, {@code
     * &#64;daily}, {@code @weekly}, {@code @monthly} or {@code @yearly}.
     */
    public PeriodicJob cron(String expression) {
        return set("cron", expression);
    }

    /** Sets the time from tick to tick, in whole seconds. */
    public PeriodicJob every(Duration interval) {
        return set("every", Json.seconds(interval));
    }

    /** Sets the time zone of {@link #cron} and {@link #except}; the default is UTC. */
    public PeriodicJob zone(ZoneId zone) {
        return set("tz", zone.getId());
    }

    /** Sets by how much each job may be due later than its tick. */
    public PeriodicJob jitter(Duration most) {
        return set("jitter", Json.seconds(most));
    }

    /** Sets how long after it is due the job expires. */
    public PeriodicJob expiresIn(Duration time) {
        return set("expires_in", Json.seconds(time));
    }

    /** Sets how late a tick may be without being late; the default is a minute. */
    public PeriodicJob grace(Duration time) {
        return set("grace", Json.seconds(time));
    }

    /** What becomes of ticks that are late. */
    public enum CatchUp {
        /** They are missed. This is the default. */
        SKIP("skip"),
        /** The newest brings its job. */
        LAST("last"),
        /** They bring their jobs, up to {@link PeriodicJob#catchUpMax}. */
        ALL("all");

        private final String word;

        CatchUp(String word) {
            this.word = word;
        }
    }

    /** Sets what becomes of ticks that are late. */
    public PeriodicJob catchUp(CatchUp what) {
        return set("catch_up", what.word);
    }

    /** Sets how many late ticks bring their jobs with {@link CatchUp#ALL}; the default is 100. */
    public PeriodicJob catchUpMax(int most) {
        return set("catch_up_max", most);
    }

    /** Skips a tick while the job of the last one waits. */
    public PeriodicJob skipOverlaps() {
        return set("overlap", "skip");
    }

    /** Sets dates without ticks: {@code 2026-12-24}, or {@code 2026-12-24..2026-12-26}. */
    public PeriodicJob except(String... dates) {
        return set("except", List.of(dates));
    }

    /** Pauses it: all its ticks are skipped. */
    public PeriodicJob paused() {
        return set("paused", true);
    }

    private PeriodicJob set(String member, Object value) {
        schedule.put(member, value);
        return this;
    }

    /**
     * {@return its definition} It is for test helpers. Throws InvalidException if the job breaks a
     * rule.
     */
    public Map<String, Object> definition() {
        return definition(Codec.standard());
    }

    Map<String, Object> definition(Codec codec) {
        if (job.isOfOneTick()) {
            throw new InvalidException("periodic job " + name + ": each tick sets jid, times and trace context of its job", null);
        }
        if (job.unique() != null) {
            throw new InvalidException("periodic job " + name + " cannot be unique: skip overlaps", null);
        }
        Map<String, Object> template = new LinkedHashMap<>(Json.object(job.prepare(Wire.now(), 0, codec).job()));
        List.of("jid", "retry_count", "enqueued_at").forEach(template::remove);
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("name", name);
        members.put("job", template);
        members.putAll(schedule);
        return members;
    }
}
