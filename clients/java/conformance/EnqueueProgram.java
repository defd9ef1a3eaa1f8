import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.github.millracejobs.Client;
import io.github.millracejobs.NewJob;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;

/** Enqueues jobs with the Java client and with amqp-client alone, for the benchmark of enqueueing. */
final class EnqueueProgram {
    private final String queue;
    private final int jobs;
    private final int atOnce;

    private EnqueueProgram(Map<String, Object> settings) {
        queue = (String) settings.get("queue");
        jobs = ((Number) settings.get("jobs")).intValue();
        atOnce = ((Number) settings.get("at_once")).intValue();
    }

    private interface Work {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        String url = System.getenv("MILLRACE_AMQP_URL");
        Map<String, Object> settings = Settings.read(System.getenv("MILLRACE_ENQUEUE"));
        EnqueueProgram program = new EnqueueProgram(settings);
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection(); Client client = Client.builder(url).build()) {
            Channel channel = connection.createChannel();
            channel.confirmSelect();
            for (int round = 0; round < ((Number) settings.get("rounds")).intValue(); round++) {
                Map<String, Object> one = Map.of("bare", timed(() -> program.bare(channel)), "library", timed(() -> program.single(client)));
                Map<String, Object> many = Map.of("bare", timed(() -> program.bareBulk(channel)), "library", timed(() -> program.bulk(client)));
                System.out.println(Settings.write(Map.of("single", one, "bulk", many)));
            }
        }
    }

    private static double timed(Work work) throws Exception {
        long begun = System.nanoTime();
        work.run();
        return (System.nanoTime() - begun) / 1e9;
    }

    private void publish(Channel channel, int number) throws IOException {
        double now = Instant.now().toEpochMilli() / 1000.0;
        String jid = String.format("%032x", number);
        String body = "{\"jid\":\"" + jid + "\",\"class\":\"Noop\",\"args\":[" + number + ",\"some text\"],\"queue\":\"" + queue
                + "\",\"created_at\":" + now + ",\"enqueued_at\":" + now + ",\"retry\":25}";
        BasicProperties properties = new BasicProperties.Builder().contentType("application/json").deliveryMode(2).messageId(jid).type("Noop")
                .timestamp(new Date()).build();
        channel.basicPublish("jobs.direct", queue, true, properties, body.getBytes(StandardCharsets.UTF_8));
    }

    private void bare(Channel channel) throws Exception {
        for (int n = 0; n < jobs; n++) {
            publish(channel, n);
            channel.waitForConfirmsOrDie();
        }
    }

    private void bareBulk(Channel channel) throws Exception {
        for (int begin = 0; begin < jobs; begin += atOnce) {
            for (int n = begin; n < begin + atOnce; n++) {
                publish(channel, n);
            }
            channel.waitForConfirmsOrDie();
        }
    }

    private void single(Client client) {
        for (int n = 0; n < jobs; n++) {
            client.enqueue(NewJob.of("Noop", n, "some text").queue(queue));
        }
    }

    private void bulk(Client client) {
        for (int begin = 0; begin < jobs; begin += atOnce) {
            List<NewJob> all = new ArrayList<>();
            for (int n = begin; n < begin + atOnce; n++) {
                all.add(NewJob.of("Noop", n, "some text").queue(queue));
            }
            client.enqueueBulk(all);
        }
    }
}
