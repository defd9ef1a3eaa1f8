package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.time.Duration;
import java.util.Date;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A channel in confirm mode, and the only thread that publishes on this connection. A broker that
 * does not read blocks this thread, but not the threads that wait with a deadline.
 */
final class Publisher {
    /** Completes when the channel is lost. */
    final CompletableFuture<Lost> lost;

    private static final int WINDOW = 1000;
    private static final String NACKED = "the broker answered nack: the queue is full or unavailable, try again later";

    private final Channel channel;
    private final ExecutorService thread;
    // How many more publishes may be unconfirmed.
    private final Semaphore room = new Semaphore(WINDOW);
    private final ConcurrentNavigableMap<Long, Answer> unanswered = new ConcurrentSkipListMap<>();
    private final Map<String, String> returned = new ConcurrentHashMap<>();
    // What the leader still owes, by correlation id.
    private final Map<String, CompletableFuture<Map<String, Object>>> replies = new ConcurrentHashMap<>();
    private boolean listening; // only the publishing thread uses it

    /** The broker's answer to a publish. */
    final class Answer {
        private final CompletableFuture<Void> done = new CompletableFuture<>();
        private final String exchange;
        private final CompletableFuture<Map<String, Object>> reply;
        private volatile boolean sent;

        private Answer(String exchange, CompletableFuture<Map<String, Object>> reply) {
            this.exchange = exchange;
            this.reply = reply;
        }

        boolean isDone() {
            return done.isDone();
        }

        CompletableFuture<Void> done() {
            return done;
        }

        /** Returns whether the message may have reached the broker. */
        boolean isSent() {
            return sent;
        }

        /**
         * Waits for the answer, at most until a deadline.
         *
         * @throws RefusedException the broker does not take the message
         * @throws Lost the channel is lost, and it is unknown whether the message arrived
         * @throws TimeoutException there is no answer yet
         */
        void get(long deadline) throws Lost, TimeoutException, InterruptedException {
            try {
                done.get(Math.max(deadline - System.nanoTime(), 0), TimeUnit.NANOSECONDS);
            } catch (ExecutionException e) {
                if (e.getCause() instanceof RefusedException refused) {
                    throw new RefusedException(refused.getMessage(), refused, refused.isReturned());
                }
                throw new Lost(e.getCause());
            } catch (TimeoutException e) {
                done.completeExceptionally(e); // if it has not been sent yet, it will not be
                throw e;
            }
        }

        private void settle(Throwable error) {
            room.release();
            if (error == null) {
                done.complete(null);
            } else {
                done.completeExceptionally(error);
            }
        }
    }

    Publisher(Link link) throws Lost {
        channel = link.channel();
        lost = Link.lost(channel);
        channel.addReturnListener(r -> returned.put(r.getProperties().getCorrelationId(), r.getReplyCode() + " " + r.getReplyText()
                // Its confirm comes next.
                + ": exchange " + r.getExchange() + ", routing key " + r.getRoutingKey()));
        channel.addConfirmListener((tag, multiple) -> answer(tag, multiple, true), (tag, multiple) -> answer(tag, multiple, false));
        Link.call(channel::confirmSelect);
        thread = Executors.newSingleThreadExecutor(Waits.daemons("millrace publisher"));
        lost.thenAccept(this::end);
    }

    /**
     * Publishes and waits for the answer. Throws RefusedException, Lost or TimeoutException, as
     * {@link Answer#get} does.
     */
    void publish(Message message, Duration within) throws Lost, TimeoutException, InterruptedException {
        long deadline = System.nanoTime() + within.toNanos();
        send(message, deadline).get(deadline);
    }

    /** Publishes, without waiting for the answer. It waits for room in the window. */
    Answer send(Message message, long deadline) throws Lost, TimeoutException, InterruptedException {
        return send(message, deadline, null);
    }

    /**
     * Publishes, and completes {@code reply} with the leader's answer to the message, or with Lost if
     * no answer can come any more. If it is null, the message asks for no answer.
     */
    Answer send(Message message, long deadline, CompletableFuture<Map<String, Object>> reply)
            throws Lost, TimeoutException, InterruptedException {
        if (!room.tryAcquire(deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
            throw new TimeoutException("too much is unconfirmed");
        }
        Answer answer = new Answer(message.exchange(), reply);
        try {
            thread.execute(() -> transmit(message, answer));
        } catch (RejectedExecutionException e) {
            room.release();
            throw lost.getNow(new Lost(e));
        }
        return answer;
    }

    /** Runs a task in the publishing thread. */
    void execute(Runnable work) {
        try {
            thread.execute(work);
        } catch (RejectedExecutionException e) {
            // The channel is lost, and nothing waits for this task any more.
        }
    }

    private void transmit(Message message, Answer answer) {
        // Set before the publish, so that a caller that gives up now knows that the message may
        // arrive.
        answer.sent = true;
        if (answer.done.isDone()) {
            room.release();
            return;
        }
        long tag = channel.getNextPublishSeqNo();
        unanswered.put(tag, answer);
        try {
            basicPublish(channel, message, true, Long.toString(tag), replyTo(answer, Long.toString(tag)));
        } catch (IOException | AlreadyClosedException e) {
            if (unanswered.remove(tag) != null) {
                answer.settle(new Lost(e));
            }
        } catch (RuntimeException | Error e) {
            // The message may not be written, but is counted. Later confirms would then be for the
            // wrong messages.
            Link.drop(channel);
            throw e;
        }
    }

    /** Prepares for the leader's answer, and returns where it goes, or null if the message asks for none. */
    private String replyTo(Answer answer, String id) throws IOException {
        if (answer.reply == null) {
            return null;
        }
        if (!listening) {
            listen();
        }
        replies.put(id, answer.reply);
        answer.reply.whenComplete((reply, error) -> replies.remove(id));
        return Leader.REPLY;
    }

    private void listen() throws IOException {
        try {
            channel.basicConsume(Leader.REPLY, true, (tag, delivery) -> {
                CompletableFuture<Map<String, Object>> reply = replies.get(delivery.getProperties().getCorrelationId());
                if (reply != null) {
                    reply.complete(Json.object(delivery.getBody()));
                }
            }, tag -> { });
        } catch (ShutdownSignalException e) {
            throw new IOException(e);
        }
        listening = true;
    }

    static void basicPublish(Channel channel, Message message, boolean mandatory, String correlationId, String replyTo) throws IOException {
        AMQP.BasicProperties properties = properties(message).correlationId(correlationId).replyTo(replyTo).build();
        channel.basicPublish(message.exchange(), message.key(), mandatory, properties, message.body());
    }

    static AMQP.BasicProperties.Builder properties(Message message) {
        return new AMQP.BasicProperties.Builder().contentType("application/json").deliveryMode(2).messageId(message.messageId())
                .type(message.type()).priority(message.priority()).timestamp(new Date()).headers(message.headers());
    }

    private void answer(long tag, boolean multiple, boolean ack) {
        if (!multiple) {
            settle(tag, unanswered.remove(tag), ack);
            return;
        }
        for (Iterator<Map.Entry<Long, Answer>> all = unanswered.headMap(tag, true).entrySet().iterator(); all.hasNext(); ) {
            Map.Entry<Long, Answer> one = all.next();
            all.remove();
            settle(one.getKey(), one.getValue(), ack);
        }
    }

    private void settle(long tag, Answer answer, boolean ack) {
        String why = returned.isEmpty() ? null : returned.remove(Long.toString(tag));
        if (answer == null) {
            return;
        }
        if (why != null) {
            answer.settle(new RefusedException(why, null, true));
        } else {
            answer.settle(ack ? null : new RefusedException(NACKED, null));
        }
    }

    private void end(Lost why) {
        thread.shutdown(); // pending tasks fail by themselves
        replies.values().forEach(reply -> reply.completeExceptionally(why));
        // The broker closes the channel if the exchange does not exist, or the user may not write
        // to it.
        boolean noExchange = why.code() == AMQP.NOT_FOUND || why.code() == AMQP.ACCESS_REFUSED;
        while (!unanswered.isEmpty()) {
            Map.Entry<Long, Answer> one = unanswered.pollFirstEntry();
            if (one != null) {
                Answer answer = one.getValue();
                answer.settle(noExchange && !answer.exchange.isEmpty() ? new RefusedException(why.getMessage(), why) : why);
            }
        }
    }
}
