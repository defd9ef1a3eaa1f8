package io.github.millracejobs;

import java.time.Duration;

/**
 * One attempt at a job, without a broker, for tests. It runs the worker's middleware, handler,
 * timeout and hooks, and ends as it would in a worker.
 *
 * <pre>{@code
 * Attempt.Result result = Attempt.of(worker, NewJob.of("Charge", "ann").retry(2)).number(3).run();
 * assertEquals(Attempt.Status.DEAD, result.status());
 * }</pre>
 */
public final class Attempt {
    private final Worker worker;
    private final NewJob source;
    private final long retryCount;
    private final Job job;

    /** How an attempt ended. */
    public enum Status {
        /** The handler ended well. */
        SUCCESS,
        /** The job failed, and is retried later. */
        RETRY,
        /** The job was given up: it is a dead job. */
        DEAD,
        /**
         * The job was dropped: by {@link Discard}, because it was cancelled, or because a job with
         * {@code dead(false)} was given up.
         */
        DISCARDED,
        /** The job went back to its queue, because the worker stops. */
        HANDED_BACK
    }

    /**
     * The result of an attempt.
     *
     * @param job the job
     * @param status how the attempt ended
     * @param failed whether it failed, or the job is dead without an attempt because it expired
     * @param error the error that ended it, or null
     * @param retryIn the time until the next attempt, or null
     */
    public record Result(Job job, Status status, boolean failed, Throwable error, Duration retryIn) {}

    private Attempt(Worker worker, NewJob source, long retryCount) {
        this.worker = worker;
        this.source = source;
        this.retryCount = retryCount;
        job = Job.of(source, retryCount, worker.codec);
    }

    /**
     * {@return the first attempt at a job} Throws InvalidException if a client would refuse the
     * job.
     */
    public static Attempt of(Worker worker, NewJob job) {
        NewJob copy = job.copy();
        Attempt attempt = new Attempt(worker, copy, 0);
        copy.jid(attempt.job.jid());
        return attempt;
    }

    /** {@return a later attempt at the same job} The first has the number 1. */
    public Attempt number(long attempt) {
        if (attempt < 1) {
            throw new IllegalArgumentException("attempts are counted from 1, not " + attempt);
        }
        return new Attempt(worker, source, attempt - 1);
    }

    /** {@return the attempt that follows a retry} */
    public Attempt next() {
        return number(retryCount + 2);
    }

    /** {@return the job as the handler gets it} */
    public Job job() {
        return job;
    }

    /** Cancels the job, before it runs, or from another thread while it runs. */
    public Attempt cancel() {
        job.signalEnd(Job.End.CANCELLED);
        return this;
    }

    /**
     * Sets the signal that the worker stops, before the job runs, or from another thread while it
     * runs.
     */
    public Attempt stopping() {
        job.signalStopping();
        return this;
    }

    /** Runs the job in this thread, calls the hooks, and returns the result. */
    public Result run() {
        Outcome outcome = outcome();
        Outcome.End end = outcome.end();
        worker.jobLog.ended(job, end);
        if (end.failed()) {
            worker.hooks.failed(job, end.error());
        }
        if (outcome.died() != null) {
            worker.hooks.died(job, outcome.died());
            worker.hooks.awaitAll();
        }
        Duration retryIn = end.next() == Outcome.Next.RETRY ? Duration.ofNanos(Math.round(end.delay() * 1e9)) : null;
        Status status = status(end.next());
        return new Result(job, status, end.failed() || status == Status.DEAD, end.error(), retryIn);
    }

    private Outcome outcome() {
        double now = Wire.now();
        if (job.isExpired(now)) {
            return Verdict.expire(job, now);
        }
        Registered handler = worker.registered(job.className());
        if (handler == null) {
            return Verdict.judge(job, WorkerException.unknownClass(job.className()), now, false, null, null);
        }
        return handler.attempt(worker, job, job::isStopping);
    }

    private static Status status(Outcome.Next next) {
        return switch (next) {
            case DONE -> Status.SUCCESS;
            case RETRY -> Status.RETRY;
            case DEAD -> Status.DEAD;
            case DISCARDED -> Status.DISCARDED;
            case HANDED_BACK -> Status.HANDED_BACK;
        };
    }
}
