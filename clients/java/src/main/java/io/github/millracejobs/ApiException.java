package io.github.millracejobs;

/** What a sidecar answered in place of what an {@link Inspector} asked for. */
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

    /** {@return the status of HTTP} */
    public int status() {
        return status;
    }

    /** {@return what a program branches on, such as {@code conflict} or {@code access_refused}} */
    public String code() {
        return code;
    }

    /** {@return a text for people} */
    public String reason() {
        return reason;
    }
}
