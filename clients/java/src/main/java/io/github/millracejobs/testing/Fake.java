package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Unique;
import io.github.millracejobs.Worker;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Collects jobs, and runs them with a worker's handlers when they are drained. It is not
 * thread-safe.
 */
public final class Fake extends Replacement<Fake> {
    private final boolean runs;
    private final Deque<Waiting> jobs = new ArrayDeque<>();

    /** A job that was enqueued, and when it is due. */
    private record Waiting(Attempt attempt, Instant at, Unique unique) {}

    /** Makes a Fake that only collects. Without a worker, it cannot drain. */
    public Fake() {
        this(null);
    }

    /** Makes a Fake that drains with the handlers of a worker. */
    public Fake(Worker worker) {
        // One without handlers only reads the jobs.
        super(worker == null ? Worker.builder().build() : worker);
        this.runs = worker != null;
    }

    @Override
    Fake self() {
        return this;
    }

    @Override
    void take(Attempt attempt, NewJob job) {
        jobs.add(new Waiting(attempt, job.at(), job.unique()));
    }

    @Override
    boolean remove(String jid) {
        return jobs.removeIf(waiting -> waiting.attempt().job().jid().equals(jid) && waiting.attempt().job().retryCount() == 0);
    }

    /** Runs an attempt. A job that is not retried has no key any more. */
    private Attempt.Result run(Waiting waiting, boolean retried) {
        keys.begins(waiting.attempt().job(), waiting.unique());
        Attempt.Result result = waiting.attempt().run();
        if (!retried || result.status() != Attempt.Status.RETRY) {
            keys.ends(waiting.attempt().job(), waiting.unique());
        }
        return result;
    }

    /** {@return the jobs that were enqueued and not drained} */
    public List<Enqueued> jobs() {
        return jobs.stream().map(waiting -> new Enqueued(waiting.attempt().job(), waiting.at())).toList();
    }

    /** {@return the jobs of a class that were enqueued and not drained} */
    public List<Enqueued> jobs(String className) {
        return jobs().stream().filter(enqueued -> enqueued.job().className().equals(className)).toList();
    }

    /**
     * Runs each job once, without waiting for scheduled ones, and then the jobs that these enqueue.
     * Jobs also run after one that fails.
     *
     * @return the number of jobs
     * @throws DrainException some have failed; it has the errors of all
     * @throws IllegalStateException the Fake has no worker
     */
    public int drain() {
        checkWorker();
        int count = 0;
        List<Attempt.Result> failures = new ArrayList<>();
        for (Waiting next = jobs.poll(); next != null; next = jobs.poll()) {
            count++;
            Attempt.Result result = run(next, false);
            if (result.failed()) {
                failures.add(result);
            }
        }
        if (!failures.isEmpty()) {
            throw new DrainException(count, failures);
        }
        return count;
    }

    /**
     * Runs each job, the jobs that it enqueues, and its retries, without waiting for their time,
     * until each job has ended well, is discarded or dead. It does not throw the errors of
     * handlers.
     *
     * @return the result of each attempt, in the order in which they ran
     * @throws IllegalStateException the Fake has no worker
     */
    public List<Attempt.Result> drainWithRetries() {
        checkWorker();
        List<Attempt.Result> results = new ArrayList<>();
        for (Waiting next = jobs.poll(); next != null; next = jobs.poll()) {
            Attempt.Result result = run(next, true);
            results.add(result);
            if (result.status() == Attempt.Status.RETRY) {
                jobs.add(new Waiting(next.attempt().next(), Instant.now().plus(result.retryIn()), next.unique()));
            }
        }
        return results;
    }

    private void checkWorker() {
        if (!runs) {
            throw new IllegalStateException("there is no worker to run jobs: use new Fake(worker)");
        }
    }

    /** Removes all jobs. */
    public void clear() {
        jobs.clear();
        keys.clear();
    }
}
