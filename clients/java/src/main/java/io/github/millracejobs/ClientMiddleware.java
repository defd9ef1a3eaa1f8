package io.github.millracejobs;

import java.util.List;

/** Wraps each publish of a client. */
@FunctionalInterface
public interface ClientMiddleware {
    /**
     * Publishes a job, which it may change, by calling {@code next}, and gives the jid; or does not, and gives null. {@code next} returns when the
     * broker has confirmed the job. Of {@code enqueueBulk} it returns when the job is checked: all of its jobs are published and confirmed
     * together, behind the middleware.
     */
    String around(NewJob job, Next next);

    /** Has a job pass through middleware, the first of it outermost, to {@code last}. The job is copied first: its owner's stays as it is. */
    static String through(List<ClientMiddleware> middleware, NewJob job, Next last) {
        Next next = last;
        for (int i = middleware.size() - 1; i >= 0; i--) {
            ClientMiddleware wrapper = middleware.get(i);
            Next inner = next;
            next = j -> wrapper.around(j, inner);
        }
        return next.enqueue(middleware.isEmpty() ? job : job.copy());
    }

    /** What is wrapped. */
    @FunctionalInterface
    interface Next {
        /** {@return the jid of the job, which it publishes} */
        String enqueue(NewJob job);
    }
}
