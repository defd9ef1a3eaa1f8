package io.github.millracejobs;

/** A sidecar answered an {@link Inspector} with an error. */
public class ApiException extends MillraceException {
    private static final long serialVersionUID = 1;

    private final int status;
    private final String code;
    private final String reason;

    ApiException(int status, String code, String reason) {
        super(reason + " (" + status + " " + code + ")", null);
        this.status = status;
        this.code = code;
        this.reason = reason;
    }

    /** {@return the HTTP status} */
    public int status() {
        return status;
    }

    /** {@return the code of the error, for programs: {@code conflict}, {@code access_refused}} */
    public String code() {
        return code;
    }

    /** {@return the reason, for people} */
    public String reason() {
        return reason;
    }
}
