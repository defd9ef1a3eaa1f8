package io.github.millracejobs.testing;

import io.github.millracejobs.Attempt;
import java.util.List;

/** Some of the jobs that were drained have failed. The cause is the error of the first, those of the others are suppressed exceptions. */
public final class DrainException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final transient List<Attempt.Result> failures;

    DrainException(int drained, List<Attempt.Result> failures) {
        super(failures.size() + " of " + drained + " jobs failed, the first is " + failures.get(0).job().className() + " "
                + failures.get(0).job().jid() + ": " + failures.get(0).error(), failures.get(0).error());
        this.failures = List.copyOf(failures);
        failures.stream().skip(1).map(Attempt.Result::error).filter(error -> error != getCause()).forEach(this::addSuppressed);
    }

    /** {@return how each of them failed, in the order in which they ran} */
    public List<Attempt.Result> failures() {
        return failures;
    }
}
