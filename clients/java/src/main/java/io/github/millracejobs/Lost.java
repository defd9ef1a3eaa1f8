package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
import com.rabbitmq.client.ShutdownSignalException;

/** The connection or channel is gone, or was not to be had. */
final class Lost extends Exception {
    private static final long serialVersionUID = 1;

    private final int code;

    Lost(Throwable why) {
        super(describe(why), why);
        this.code = code(why);
    }

    /** The broker's, or 0. */
    int code() {
        return code;
    }

    /** Whether the broker will not have us, however often we ask. */
    boolean isUnwelcome() {
        for (Throwable at = getCause(); at != null; at = at.getCause()) {
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

    /** The innermost says most: the library's own wrappers have no text. */
    private static String describe(Throwable why) {
        String text = null;
        for (Throwable at = why; at != null; at = at.getCause()) {
            text = at.getMessage() != null ? at.getMessage() : text;
        }
        return text != null ? text : why.getClass().getSimpleName();
    }
}
