package io.github.millracejobs;

import com.rabbitmq.client.AMQP;

/** A delivery that has not begun. {@code at} is when it arrived, on a monotonic clock. */
record Arrival(long tag, boolean redelivered, AMQP.BasicProperties properties, byte[] body, long at) {
    int priority() {
        return properties.getPriority() == null ? 0 : properties.getPriority();
    }
}
