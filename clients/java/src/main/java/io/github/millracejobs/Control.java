package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Receives commands to this worker, and asks which queues are paused. */
final class Control {
    private static final String REPLY = "amq.rabbitmq.reply-to";

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

    private static void consume(Channel channel, String queue, Consumer<byte[]> on) throws Lost {
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

    /** Asks the leader which queues are paused. Without an answer, nothing changes. */
    static void askPaused(Session session) {
        CompletableFuture<Map<String, Object>> answered = new CompletableFuture<>();
        try {
            Channel channel = session.link.channel();
            try {
                channel.addReturnListener(returned -> answered.complete(Map.of()));
                consume(channel, REPLY, body -> answered.complete(Json.object(body)));
                byte[] question = Json.write(Map.of("id", Keys.random(16), "command", "state"));
                Link.call(() -> {
                    Publisher.basicPublish(channel, Message.record(Wire.LEADER, question), true, Keys.random(8), REPLY);
                    return null;
                });
                Waits.firstOf(Session.SHORT, answered, session.worker.stopped, session.lost);
            } finally {
                Link.drop(channel);
            }
        } catch (Lost e) {
            return; // if the connection is lost, that is noticed elsewhere
        }
        Map<String, Object> answer = answered.getNow(null);
        if (answer != null && answer.get("status") instanceof Number status && status.intValue() == 200
                && answer.get("paused") instanceof List<?> names) {
            Set<String> paused = new HashSet<>();
            names.forEach(name -> paused.add(text(name)));
            session.worker.paused(paused);
        }
    }
}
