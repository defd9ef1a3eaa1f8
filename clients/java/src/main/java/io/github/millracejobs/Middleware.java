package io.github.millracejobs;

import java.util.List;

/** Wraps all handlers of a worker. */
@FunctionalInterface
public interface Middleware {
    /**
     * Runs a job by a call of {@code next}, or does not run it.
     *
     * @throws Exception the job failed
     */
    void around(Job job, Handler next) throws Exception;

    /** {@return a handler with middleware around it, the first one outermost} */
    static Handler wrap(List<Middleware> middleware, Handler handler) {
        Handler next = handler;
        for (int i = middleware.size() - 1; i >= 0; i--) {
            Middleware wrapper = middleware.get(i);
            Handler inner = next;
            next = job -> wrapper.around(job, inner);
        }
        return next;
    }
}
