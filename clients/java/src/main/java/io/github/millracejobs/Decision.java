package io.github.millracejobs;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Which job stays of several with the same key.
 *
 * @param jid that of the job that stays
 * @param duplicate whether it is another one than the job that was enqueued, which does not run
 */
public record Decision(String jid, boolean duplicate) {
    private static final int CREATED = 201;
    private static final int OK = 200;

    /**
     * Waits for the leader's answer about a job that is published. Throws UndecidedException if there
     * is none.
     */
    static Decision await(CompletableFuture<Map<String, Object>> reply, String jid, Duration within, CompletableFuture<?> closed) {
        Waits.firstOf(within, reply, closed);
        boolean answered = reply.isDone() && !reply.isCompletedExceptionally();
        String why = reply.isDone() ? "the connection was lost" : closed.isDone() ? "the client was closed" : "no leader has answered before the deadline";
        reply.cancel(false);
        if (!answered) {
            throw new UndecidedException(jid, "job " + jid + " is published, and a leader will decide whether it is a duplicate: " + why);
        }
        return by(reply.join(), jid);
    }

    private static Decision by(Map<String, Object> answer, String jid) {
        Object stays = answer.getOrDefault("jid", jid);
        return switch (Leader.status(answer)) {
            case CREATED -> new Decision(String.valueOf(stays), false);
            case OK -> new Decision(String.valueOf(answer.getOrDefault("duplicate_of", stays)), true);
            default -> throw new RefusedException(String.valueOf(answer.get("reason")), null);
        };
    }
}
