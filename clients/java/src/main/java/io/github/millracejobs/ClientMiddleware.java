package io.github.millracejobs;

import java.util.List;

/** Wraps each publish of a client. */
@FunctionalInterface
public interface ClientMiddleware {
    /**
     * Publishes a job, which it may change, by a call of {@code next}, and returns the jid. Without
     * a call of {@code next}, nothing is published, and it returns null. {@code next} returns when
     * the broker has confirmed the job. In {@code enqueueBulk}, {@code next} returns when the job
     * is checked; all jobs are published and confirmed together, after the middleware.
     */
    String around(NewJob job, Next next);

    /**
     * Passes a copy of a job through middleware, the first one outermost, to {@code last}. The
     * caller's job does not change.
     */
    static String through(List<ClientMiddleware> middleware, NewJob job, Next last) {
        Next next = last;
        for (int i = middleware.size() - 1; i >= 0; i--) {
            ClientMiddleware wrapper = middleware.get(i);
            Next inner = next;
            next = j -> wrapper.around(j, inner);
        }
        return next.enqueue(middleware.isEmpty() ? job : job.copy());
    }

    /** The next step of a publish. */
    @FunctionalInterface
    interface Next {
        /** {@return the jid of the job, which it publishes} */
        String enqueue(NewJob job);
    }
}
