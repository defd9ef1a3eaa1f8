package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** Receives commands to this worker, and asks which queues are paused. */
final class Control {
    private Control() {}

    /**
     * Declares the exclusive queue of this process, follows its commands, and returns the queue's
     * name.
     */
    static String listen(Session session) throws Lost {
        Channel channel = session.link.channel();
        String queue = Link.call(() -> channel.queueDeclare("", false, true, false, null)).getQueue();
        consume(channel, queue, body -> obey(session.worker, body));
        // A channel of its own, which closes if the exchange does not exist.
        Channel binding = session.link.channel();
        try {
            Link.call(() -> binding.queueBind(queue, Wire.CONTROL, ""));
        } catch (Lost e) {
            session.worker.log.warn("millrace: commands do not reach this worker: {}", e.getMessage());
        } finally {
            Link.drop(binding);
        }
        return queue;
    }

    static void consume(Channel channel, String queue, Consumer<byte[]> on) throws Lost {
        Link.call(() -> channel.basicConsume(queue, true, new DefaultConsumer(channel) {
            @Override
            public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
                on.accept(body);
            }
        }));
    }

    /** Carries out a command, if it is valid and addressed to this worker. */
    static void obey(Worker worker, byte[] body) {
        Map<String, Object> command = Json.object(body);
        if (command == null || !"*".equals(command.get("identity")) && !worker.identity.equals(command.get("identity"))) {
            return;
        }
        String op = text(command.get("op"));
        String queue = text(command.get("queue"));
        String jid = text(command.get("jid"));
        worker.log.info("millrace: command {}, queue {}, jid {}", op, queue, jid);
        switch (op) {
            case "quiet" -> worker.quiet();
            case "stop" -> worker.stop();
            case "cancel" -> worker.running.cancel(jid);
            case "pause", "resume" -> {
                if (!queue.isEmpty()) {
                    worker.pause(queue, op.equals("pause"));
                }
            }
            default -> { } // of a later version
        }
    }

    private static String text(Object value) {
        return value instanceof String text ? text : "";
    }

    /**
     * Asks the leader which queues are paused, and returns the epoch below which jobs must be
     * claimed. Without an answer, nothing changes and the epoch is unknown.
     */
    static long askState(Session session) {
        Map<String, Object> state = ask(session, Json.write(Map.of("id", Keys.random(16), "command", "state")));
        if (state.get("paused") instanceof List<?> names) {
            Set<String> paused = new HashSet<>();
            names.forEach(name -> paused.add(text(name)));
            session.worker.paused(paused);
        }
        return state.isEmpty() ? Session.UNKNOWN : state.get("claim_below") instanceof Number below ? below.longValue() : 0;
    }

    /** Asks the leader about a slot: "run", "drop", or "" if there is no answer. */
    static String claim(Session session, Slot slot) {
        return text(ask(session, slot.claim(session.worker.identity)).get("claim"));
    }

    /** Returns what the leader answers, or nothing if it does not carry out the command. */
    private static Map<String, Object> ask(Session session, byte[] command) {
        try {
            Map<String, Object> answer = Leader.ask(session.link, Keys.random(8), command, Session.SHORT, session.worker.stopped, session.lost);
            return Leader.status(answer) == 200 ? answer : Map.of();
        } catch (RefusedException | Lost e) {
            return Map.of(); // if the connection is lost, that is noticed elsewhere
        }
    }
}
