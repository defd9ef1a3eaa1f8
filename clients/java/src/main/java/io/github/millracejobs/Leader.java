package io.github.millracejobs;

import com.rabbitmq.client.Channel;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/** Sends commands to the leader, which carries out the id of a command once. */
final class Leader {
    static final String REPLY = "amq.rabbitmq.reply-to";
    private static final String NO_LEADER = "no sidecar leads right now";
    private static final Duration ANSWER_WITHIN = Duration.ofSeconds(5);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(1); // between two tries

    private final Line line;
    private final long deadline;
    private boolean sent; // whether the leader may have carried it out
    private Throwable why;

    Leader(Line line, long deadline) {
        this.line = line;
        this.deadline = deadline;
    }

    /**
     * Sends a command once, and returns the answer. One of the events ends the wait.
     *
     * @throws RefusedException it is known that the leader has done nothing
     * @throws Lost there is no answer
     */
    static Map<String, Object> ask(Link link, String id, byte[] command, Duration within, CompletableFuture<?>... ends) throws Lost {
        CompletableFuture<Map<String, Object>> answered = new CompletableFuture<>();
        CompletableFuture<?>[] events = Stream.concat(Stream.of(answered, link.lost), Stream.of(ends)).toArray(CompletableFuture<?>[]::new);
        Channel channel = link.channel();
        try {
            channel.addReturnListener(returned -> answered.complete(Map.of("status", 503)));
            Control.consume(channel, REPLY, body -> answered.complete(Json.object(body)));
            Link.call(() -> {
                Publisher.basicPublish(channel, Message.record(Wire.LEADER, command), true, id, REPLY);
                return null;
            });
            Waits.firstOf(within, events);
        } finally {
            Link.drop(channel);
        }
        Map<String, Object> answer = answered.getNow(null);
        if (answer == null) {
            throw link.lost.isDone() ? link.lost.join() : new Lost(new TimeoutException("the leader did not answer"));
        }
        if (status(answer) == 503) {
            Object reason = answer.get("reason");
            throw new RefusedException(reason == null ? NO_LEADER : NO_LEADER + ": " + reason, null, true);
        }
        return answer;
    }

    static int status(Map<String, Object> answer) {
        return answer.get("status") instanceof Number status ? status.intValue() : 0;
    }

    /** Sends a command until the leader has answered, at most until the deadline. */
    Map<String, Object> ask(String id, byte[] command) {
        Waits.Pauses pauses = new Waits.Pauses(LONGEST_PAUSE);
        while (true) {
            Map<String, Object> answer = attempt(id, command);
            if (answer != null) {
                return answer;
            }
            Duration pause = pauses.next();
            if (pause.compareTo(left()) > 0) {
                throw failure();
            }
            try {
                line.pause(pause);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw failure();
            }
        }
    }

    private Map<String, Object> attempt(String id, byte[] command) {
        Link link;
        try {
            link = line.link(deadline);
        } catch (Lost | TimeoutException e) {
            why = why == null || e instanceof Lost ? e : why;
            throw failure();
        } catch (ClosedException e) {
            throw sent ? failure() : e;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failure();
        }
        Duration within = left().compareTo(ANSWER_WITHIN) < 0 ? left() : ANSWER_WITHIN;
        try {
            return ask(link, id, command, within, line.closed());
        } catch (RefusedException e) {
            why = e;
        } catch (Lost e) {
            why = e;
            sent = true;
        }
        return null;
    }

    private Duration left() {
        return Duration.ofNanos(Math.max(deadline - System.nanoTime(), 0));
    }

    private MillraceException failure() {
        String text = why == null || why.getMessage() == null ? "the deadline passed" : why.getMessage();
        if (sent) {
            return new UnconfirmedException(null, "the leader may have carried it out: " + text, why);
        }
        return why instanceof RefusedException ? new RefusedException(text, why) : new UnreachableException("broker not reached: " + text, why);
    }
}
