package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * A lane on one channel. It is the lane's only source of deliveries, so that no job of a paused
 * queue can begin. Its lock is that of the pool.
 */
final class Attachment {
    final Session session;
    final Pool pool;
    /** Completes when the channel is lost: the broker delivers its jobs again. */
    final CompletableFuture<Lost> lost;

    // How long a delivery may wait while the lane is busy with other queues.
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(5);
    private static final long WARN_EVERY = TimeUnit.SECONDS.toNanos(10);
    private static final Duration TICK = Duration.ofSeconds(1);

    private final Worker worker;
    private final Channel channel;
    private final Hand hand;
    private final Consuming[] consumers; // by queue; null while it is not consumed
    private final boolean[] resting; // by queue; given back, until a thread is free
    // When the last warning about the executor was logged.
    private long warned = System.nanoTime() - 2 * WARN_EVERY;
    private CompletableFuture<Void> change = new CompletableFuture<>();
    private final CompletableFuture<Void> cancelled = new CompletableFuture<>();

    Attachment(Session session, Pool pool) throws Lost {
        this.session = session;
        this.pool = pool;
        this.worker = session.worker;
        this.channel = session.link.channel();
        this.lost = Link.lost(channel);
        this.hand = new Hand(pool.lane);
        this.consumers = new Consuming[pool.lane.queues.size()];
        this.resting = new boolean[pool.lane.queues.size()];
    }

    /** Consumes until the channel is lost, and returns the reason. */
    String run() throws Lost {
        Link.call(() -> {
            channel.basicQos(pool.prefetch());
            return null;
        });
        while (!lost.isDone() && !cancelled.isDone()) {
            CompletableFuture<Void> next;
            synchronized (pool) {
                next = change;
            }
            adjust();
            Waits.firstOf(TICK, next, lost, cancelled);
            synchronized (pool) {
                if (change.isDone()) {
                    change = new CompletableFuture<>();
                }
                share();
                begin();
            }
        }
        return lost.isDone() ? lost.join().getMessage() : "the broker cancelled a consumer";
    }

    void close() {
        Link.drop(channel);
    }

    /**
     * Reacts when a queue was paused or resumed, or the worker became quiet. The caller holds the
     * lock.
     */
    void changed() {
        change.complete(null);
    }

    /** Begins waiting deliveries while threads are free. The caller holds the lock. */
    void begin() {
        while (pool.isIdle() && !lost.isDone()) {
            int queue = hand.next(this::isWanted);
            if (queue < 0) {
                return;
            }
            Arrival arrival = hand.take(queue);
            Task task = new Task(worker, this, pool.lane.queues.get(queue), arrival);
            worker.running.add(task);
            try {
                pool.begin(task);
            } catch (RejectedExecutionException e) {
                // By the program's executor; the next tick tries again.
                worker.running.remove(task);
                hand.putFirst(queue, arrival);
                refused(e);
                return;
            }
        }
    }

    private void refused(RejectedExecutionException why) {
        if (System.nanoTime() - warned > WARN_EVERY) {
            warned = System.nanoTime();
            worker.log.warn("millrace: the executor takes no job of lane {}, trying again: {}", pool.lane.name, why.getMessage());
        }
    }

    private boolean isWanted(int queue) {
        return !worker.isQuiet() && !resting[queue] && !worker.isPaused(pool.lane.queues.get(queue));
    }

    /**
     * Starts the consumers that are wanted, and cancels the others. Called in the lane's own
     * thread, because it waits for the broker's answers.
     */
    private void adjust() throws Lost {
        for (int queue = 0; queue < consumers.length; queue++) {
            boolean wanted;
            Consuming consumer;
            synchronized (pool) {
                wanted = isWanted(queue);
                consumer = consumers[queue];
            }
            if (wanted && consumer == null) {
                consume(queue);
            } else if (!wanted && consumer != null) {
                cancel(queue, consumer);
            }
        }
    }

    private void consume(int queue) throws Lost {
        String name = pool.lane.queues.get(queue);
        if (!session.ensureQueue(name)) {
            return; // the next tick tries again
        }
        Consuming consumer = new Consuming(queue, worker.process + "-" + session.nextTag());
        synchronized (pool) {
            consumers[queue] = consumer;
        }
        Link.call(() -> channel.basicConsume(Wire.QUEUE_PREFIX + name, false, consumer.tag, consumer));
    }

    private void cancel(int queue, Consuming consumer) throws Lost {
        Link.call(() -> {
            channel.basicCancel(consumer.tag);
            return null;
        });
        List<Arrival> back;
        synchronized (pool) {
            consumers[queue] = null;
            back = hand.empty(queue);
        }
        back.forEach(arrival -> answer(Outcome.Then.REQUEUE, arrival.tag()));
    }

    /**
     * Gives back queues whose deliveries wait too long because the lane is busy with others.
     * Consumes such queues again when the lane has a free thread.
     */
    private void share() {
        boolean idle = hand.isEmpty() && pool.isIdle();
        for (int queue = 0; consumers.length > 1 && queue < consumers.length; queue++) {
            if (idle && resting[queue] || !resting[queue] && hand.waited(queue, System.nanoTime()) > PATIENCE) {
                resting[queue] = !idle;
                change.complete(null);
            }
        }
    }

    /** Answers a delivery. If the channel is lost, the broker delivers the job again. */
    void answer(Outcome.Then then, long tag) {
        try {
            switch (then) {
                case ACK -> channel.basicAck(tag, false);
                case REQUEUE -> channel.basicNack(tag, false, true);
                default -> channel.basicReject(tag, false);
            }
        } catch (IOException | AlreadyClosedException e) {
            // Its job is delivered again.
        }
    }

    /**
     * A consumer of one queue. The AMQP library calls it in its delivery thread, so it must not
     * wait.
     */
    private final class Consuming extends DefaultConsumer {
        private final int queue;
        private final String tag;

        Consuming(int queue, String tag) {
            super(channel);
            this.queue = queue;
            this.tag = tag;
        }

        @Override
        public void handleDelivery(String of, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
            Arrival arrival = new Arrival(envelope.getDeliveryTag(), envelope.isRedeliver(), properties, body, System.nanoTime());
            synchronized (pool) {
                if (consumers[queue] == this) {
                    hand.put(queue, arrival);
                    begin();
                    return;
                }
            }
            // The delivery was on its way when its consumer was cancelled.
            answer(Outcome.Then.REQUEUE, arrival.tag());
        }

        @Override
        public void handleCancel(String of) {
            cancelled.complete(null);
        }
    }
}
