package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import io.github.millracejobs.NewJob;
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
    private final Worker worker;
    private final boolean runs;
    private final Deque<Waiting> jobs = new ArrayDeque<>();

    /** A job that was enqueued, and when it is due. */
    private record Waiting(Attempt attempt, Instant at) {}

    /** Makes a Fake that only collects. Without a worker, it cannot drain. */
    public Fake() {
        this(null);
    }

    /** Makes a Fake that drains with the handlers of a worker. */
    public Fake(Worker worker) {
        this.runs = worker != null;
        // One without handlers, which only reads the jobs.
        this.worker = runs ? worker : Worker.builder().build();
    }

    @Override
    Fake self() {
        return this;
    }

    @Override
    String take(NewJob job) {
        Attempt attempt = Attempt.of(worker, job);
        jobs.add(new Waiting(attempt, job.at()));
        return attempt.job().jid();
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
            Attempt.Result result = next.attempt().run();
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
            Attempt.Result result = next.attempt().run();
            results.add(result);
            if (result.status() == Attempt.Status.RETRY) {
                jobs.add(new Waiting(next.attempt().next(), Instant.now().plus(result.retryIn())));
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
    }
}
