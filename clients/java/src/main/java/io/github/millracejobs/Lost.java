package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
import com.rabbitmq.client.ShutdownSignalException;
import java.security.cert.CertificateException;
import java.util.List;
import java.util.stream.Collectors;

/** The connection or channel is lost, or could not be opened. */
final class Lost extends Exception {
    private static final long serialVersionUID = 1;

    private final int code;
    private final boolean own; // whether the program caused it, not the broker

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

    /**
     * The program gave no credentials. The client asks it again for the next connection, even if
     * its error looks like a refusal by the broker.
     */
    static Lost noCredentials(Throwable why) {
        return new Lost("credentials: " + innermost(why), why, true);
    }

    /** The same error, with an address. */
    Lost(String address, Lost why) {
        super(address + ": " + why.getMessage(), why);
        this.code = why.code;
        this.own = false;
    }

    /** The errors of all hosts, none of which accepted a connection. */
    Lost(List<Lost> failures) {
        super(failures.stream().map(Lost::getMessage).collect(Collectors.joining("; ")));
        this.code = 0;
        this.own = false;
        failures.forEach(this::addSuppressed);
    }

    /** Returns the broker's reply code, or 0. */
    int code() {
        return code;
    }

    /**
     * Returns whether the broker refuses the client, so that further attempts are useless. If
     * several hosts were tried, the refusal of one is enough.
     */
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
            // AuthenticationFailureException is a subclass of this one.
            if (at instanceof PossibleAuthenticationFailureException) {
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

    /**
     * Returns the text of an error. If a certificate was refused, the text says so, because the
     * causes do not.
     */
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

    /**
     * Returns the message of the innermost error that has one. The library's wrappers have none.
     */
    private static String innermost(Throwable why) {
        String text = null;
        for (Throwable at = why; at != null; at = at.getCause()) {
            text = at.getMessage() != null ? at.getMessage() : text;
        }
        return text != null ? text : why.getClass().getSimpleName();
    }
}
