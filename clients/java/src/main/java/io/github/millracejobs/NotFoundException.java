package io.github.millracejobs;

/** There is no such job or queue. */
public final class NotFoundException extends ApiException {
    private static final long serialVersionUID = 1;

    NotFoundException(int status, String code, String reason) {
        super(status, code, reason);
    }
}
