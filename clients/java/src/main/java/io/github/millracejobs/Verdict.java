package io.github.millracejobs;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongUnaryOperator;

/** Decides the outcome of a job that did not end well. Times are seconds since the epoch. */
final class Verdict {
    // A handler's own backoff must be below this number of seconds. The sidecar would read the time
    // after a longer one as milliseconds.
    static final long LONGEST_OWN = 10_000_000_000L;
    private static final long CENTURY = 100L * 365 * 24 * 3600;

    private Verdict() {}

    /**
     * Returns the outcome of a job whose handler failed. {@code end} is the reason of its cancel
     * signal, if that was set.
     */
    static Outcome judge(Job job, Throwable error, double now, boolean stopping, Job.End end, Backoff own) {
        if (error instanceof Discard) {
            return Outcome.acknowledged(Outcome.DISCARDED, null, null, Outcome.End.discarded(error, Failure.message(error), false));
        }
        if (error instanceof Kill) {
            return bury(job, error, "killed", now, true);
        }
        if (stopping && (error instanceof HandBack || end == Job.End.STOPPING)) {
            return Outcome.HANDED_BACK;
        }
        if (end == Job.End.CANCELLED) {
            return Outcome.acknowledged(Outcome.DISCARDED, null, null, Outcome.End.discarded(error, "cancelled", false));
        }
        if (job.retryCount() >= job.members.retry()) {
            return job.members.dead() ? bury(job, error, "exhausted", now, true)
                    : Outcome.acknowledged(Outcome.DISCARDED, Failure.errorClass(error), error, Outcome.End.discarded(error, "exhausted", true));
        }
        double delay = error instanceof RetryIn later && later.delay().getSeconds() < LONGEST_OWN ? seconds(later.delay())
                : delay(job, error, own);
        return Outcome.written(Wire.RETRIES, retryRecord(job, error, now, now + delay), Outcome.FAILED, null,
                Outcome.End.retry(error, delay, now + delay));
    }

    static Outcome expire(Job job, double now) {
        WorkerException expired = WorkerException.expired();
        if (!job.members.dead()) {
            return Outcome.acknowledged(Outcome.EXPIRED, "expired", null, Outcome.End.discarded(expired, "expired", false));
        }
        return Outcome.written(Wire.DEAD, deadRecord(job, expired, "expired", now), Outcome.EXPIRED, null,
                Outcome.End.dead(expired, "expired", false));
    }

    static Outcome poison(Job job, int deaths, double now) {
        return bury(job, WorkerException.poison(deaths), "poison", now, false);
    }

    private static Outcome bury(Job job, Throwable error, String reason, double now, boolean failed) {
        return Outcome.written(Wire.DEAD, deadRecord(job, error, reason, now), Outcome.DEAD, error, Outcome.End.dead(error, reason, failed));
    }

    /** Returns the handler's own backoff if it is valid, else the default one. */
    private static double delay(Job job, Throwable error, Backoff own) {
        Duration after = own == null ? null : own.after(job.retryCount(), error, job);
        double seconds = after == null ? 0 : seconds(after);
        if (seconds > 0) {
            return seconds;
        }
        return backoff(job.retryCount(), most -> ThreadLocalRandom.current().nextLong(most + 1));
    }

    private static double seconds(Duration time) {
        return time.getSeconds() + time.getNano() / 1e9;
    }

    /**
     * Returns the default backoff in seconds. {@code draw} returns a random number from 0 to its
     * argument.
     */
    static long backoff(long retryCount, LongUnaryOperator draw) {
        double power = Math.pow(retryCount, 4);
        return power > CENTURY ? CENTURY : Math.min((long) power + 15 + draw.applyAsLong(30 * (retryCount + 1)), CENTURY);
    }

    private static byte[] retryRecord(Job job, Throwable error, double failed, double due) {
        Map<String, Object> head = new LinkedHashMap<>();
        head.put("type", "retry");
        head.put("jid", Wire.valid(job.jid()));
        head.put("retry_at", Json.time(due));
        head.put("retry_count", job.retryCount() + 1);
        head.put("failed_at", Json.time(failed));
        return around(job, error, head, null);
    }

    private static byte[] deadRecord(Job job, Throwable error, String reason, double died) {
        Map<String, Object> head = new LinkedHashMap<>();
        head.put("type", "dead_job");
        head.put("jid", Wire.valid(job.jid()));
        head.put("died_at", Json.time(died));
        head.put("retry_count", job.retryCount());
        return around(job, error, head, reason);
    }

    private static byte[] around(Job job, Throwable error, Map<String, Object> head, String reason) {
        head.put("error_class", Failure.errorClass(error));
        head.put("error_message", Failure.message(error));
        int lines = job.members.backtrace();
        String backtrace = lines > 0 ? Failure.backtrace(error, lines) : "";
        if (!backtrace.isEmpty()) {
            head.put("backtrace", backtrace);
        }
        if (reason != null) {
            head.put("reason", reason);
        }
        return NewJob.splice(Json.write(head), job.members.comesBackTo(job.queue(), job.bytes()));
    }
}
