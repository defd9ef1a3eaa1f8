package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
import com.rabbitmq.client.ShutdownSignalException;
import java.security.cert.CertificateException;
import java.util.List;
import java.util.stream.Collectors;

/** The connection or channel is gone, or was not to be had. */
final class Lost extends Exception {
    private static final long serialVersionUID = 1;

    private final int code;
    private final boolean own; // the program's fault, not the broker's

    Lost(Throwable why) {
        super(describe(why), why);
        this.code = code(why);
        this.own = false;
    }

    private Lost(String message, Throwable why, boolean own) {
        super(message, why);
        this.code = 0;
        this.own = own;
    }

    /** The program gave no credentials. Even if its error looks like a refusal by the broker, it is asked again. */
    static Lost noCredentials(Throwable why) {
        return new Lost("credentials: " + innermost(why), why, true);
    }

    /** The same at an address. */
    Lost(String address, Lost why) {
        super(address + ": " + why.getMessage(), why);
        this.code = why.code;
        this.own = false;
    }

    /** A round of all hosts in which none took us. */
    Lost(List<Lost> failures) {
        super(failures.stream().map(Lost::getMessage).collect(Collectors.joining("; ")));
        this.code = 0;
        this.own = false;
        failures.forEach(this::addSuppressed);
    }

    /** The broker's, or 0. */
    int code() {
        return code;
    }

    /** Whether the broker will not have us, however often we ask. Of a round of several hosts, one that said so is enough. */
    boolean isUnwelcome() {
        if (own) {
            return false;
        }
        for (Throwable failure : getSuppressed()) {
            if (failure instanceof Lost lost && lost.isUnwelcome()) {
                return true;
            }
        }
        for (Throwable at = getCause(); at != null; at = at.getCause()) {
            if (at instanceof Lost lost) {
                return lost.isUnwelcome();
            }
            if (at instanceof PossibleAuthenticationFailureException) { // the sure one is one of these
                return true;
            }
        }
        return code == AMQP.ACCESS_REFUSED || code == AMQP.NOT_ALLOWED;
    }

    private static int code(Throwable why) {
        for (Throwable at = why; at != null; at = at.getCause()) {
            if (at instanceof Lost lost) {
                return lost.code;
            }
            if (at instanceof ShutdownSignalException signal) {
                Method reason = signal.getReason();
                return reason instanceof AMQP.Connection.Close close ? close.getReplyCode()
                        : reason instanceof AMQP.Channel.Close close ? close.getReplyCode() : 0;
            }
        }
        return 0;
    }

    /** What is below a refused certificate does not name it. */
    private static String describe(Throwable why) {
        for (Throwable at = why; at != null; at = at.getCause()) {
            if (at instanceof Lost) {
                return at.getMessage();
            }
            if (at instanceof CertificateException && at.getMessage() != null) {
                return "the broker's certificate is not accepted: " + at.getMessage();
            }
        }
        return innermost(why);
    }

    /** The innermost says most: the library's own wrappers have no text. */
    private static String innermost(Throwable why) {
        String text = null;
        for (Throwable at = why; at != null; at = at.getCause()) {
            text = at.getMessage() != null ? at.getMessage() : text;
        }
        return text != null ? text : why.getClass().getSimpleName();
    }
}
