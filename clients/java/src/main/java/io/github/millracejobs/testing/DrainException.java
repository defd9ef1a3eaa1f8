package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import java.util.List;

/**
 * Some of the drained jobs have failed. The cause is the error of the first one. The errors of the
 * others are suppressed exceptions.
 */
public final class DrainException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final transient List<Attempt.Result> failures;

    DrainException(int drained, List<Attempt.Result> failures) {
        super(failures.size() + " of " + drained + " jobs failed, the first is " + failures.get(0).job().className() + " "
                + failures.get(0).job().jid() + ": " + failures.get(0).error(), failures.get(0).error());
        this.failures = List.copyOf(failures);
        failures.stream().skip(1).map(Attempt.Result::error).filter(error -> error != getCause()).forEach(this::addSuppressed);
    }

    /** {@return the result of each failed job, in the order in which they ran} */
    public List<Attempt.Result> failures() {
        return failures;
    }
}
