package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class LinkTest {
    @Test
    void urls() {
        assertEquals("/", Link.factory("amqp://localhost").getVirtualHost());
        assertEquals("/", Link.factory("amqp://localhost/").getVirtualHost());
        assertEquals("/", Link.factory("amqp://localhost/%2f").getVirtualHost());
        ConnectionFactory factory = Link.factory("amqp://ann:secret@example.com:5673/jobs");
        assertEquals("ann secret example.com 5673 jobs", String.join(" ", factory.getUsername(), factory.getPassword(), factory.getHost(),
                Integer.toString(factory.getPort()), factory.getVirtualHost()));
        assertFalse(factory.isAutomaticRecoveryEnabled());
        assertFalse(factory.isSSL());
        assertTrue(Link.factory("amqps://localhost").isSSL());
    }

    @Test
    void heartbeats() {
        assertEquals(10, Link.factory("amqp://localhost").getRequestedHeartbeat());
        assertEquals(10, Link.factory("amqp://localhost?heartbeat=0").getRequestedHeartbeat());
        assertEquals(3, Link.factory("amqp://localhost?heartbeat=3").getRequestedHeartbeat());
    }

    private static Lost closedWith(int code) {
        AMQP.Connection.Close close = new AMQP.Connection.Close.Builder().replyCode(code).replyText("why not").build();
        return new Lost(new IOException(new ShutdownSignalException(true, false, close, null)));
    }

    @Test
    void whatTheBrokerSays() {
        assertEquals(530, closedWith(530).code());
        assertTrue(closedWith(530).getMessage().contains("why not"));
        assertTrue(closedWith(530).isUnwelcome());
        assertTrue(closedWith(403).isUnwelcome());
        assertFalse(closedWith(320).isUnwelcome());
        assertEquals(320, new Lost(closedWith(320)).code());
        assertTrue(new Lost(new AuthenticationFailureException("no")).isUnwelcome());
        assertFalse(new Lost(new IOException()).isUnwelcome());
        assertEquals("IOException", new Lost(new IOException()).getMessage());
    }
}
