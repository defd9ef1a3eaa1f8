import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.IOException;

/** The loop to which the Java client is compared: amqp-client alone. */
final class BareProgram {
    private BareProgram() {}

    public static void main(String[] args) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(System.getenv("MILLRACE_AMQP_URL"));
        Connection connection = factory.newConnection();
        Channel channel = connection.createChannel();
        String queue = null;
        int concurrency = 0;
        try (JsonParser settings = new JsonFactory().createParser(System.getenv("MILLRACE_WORKER"))) {
            while (settings.nextToken() != null) {
                if ("queues".equals(settings.currentName()) && queue == null && settings.currentToken().isStructStart()) {
                    queue = settings.nextTextValue();
                } else if ("concurrency".equals(settings.currentName()) && settings.currentToken().isNumeric()) {
                    concurrency = settings.getIntValue();
                }
            }
        }
        channel.basicQos(concurrency);
        channel.basicConsume("queue." + queue, false, (tag, delivery) -> channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false),
                tag -> { });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                connection.close();
            } catch (IOException e) {
                System.err.println(e);
            }
            Runtime.getRuntime().halt(0); // otherwise the exit code would be 143
        }));
        Thread.currentThread().join();
    }
}
