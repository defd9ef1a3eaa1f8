package io.github.millracejobs;

import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** A handler, with middleware around it, and its options. */
record Registered(Handler run, HandlerOptions options) {
    /**
     * Runs a job in this thread, and returns the outcome. {@code stopping} reports whether the
     * worker stops at that time.
     */
    Outcome attempt(Worker worker, Job job, BooleanSupplier stopping) {
        Double limit = job.members.timeout() != null ? job.members.timeout() : options.timeout();
        Future<?> clock = limit == null ? null
                : worker.clock.schedule(() -> job.signalEnd(Job.End.TIMEOUT), Math.round(limit * 1000), TimeUnit.MILLISECONDS);
        Throwable error = null;
        try {
            run.run(job);
        } catch (Throwable e) {
            // Also a StackOverflowError or OutOfMemoryError: one job must not end the process.
            error = e;
        } finally {
            if (clock != null) {
                clock.cancel(false);
            }
            Thread.interrupted(); // clears an interrupt that the handler left
        }
        if (error == null) {
            return Outcome.SUCCEEDED;
        }
        Job.End end = job.end();
        if (end == Job.End.TIMEOUT && !(error instanceof Discard) && !(error instanceof Kill)) {
            error = WorkerException.timeout(limit, error);
        }
        return Verdict.judge(job, error, Wire.now(), stopping.getAsBoolean(), end, options.backoff(worker.jobLog));
    }
}
