package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Unique jobs, with a broker, and a queue that stands for the leader's stream. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class UniqueTest {
    private static final String OTHER = "{\"status\":200,\"jid\":\"mine\",\"duplicate_of\":\"other\"}";

    private static PrivateBroker broker;
    private static Connection connection;

    private final List<Map<String, Object>> jobs = new CopyOnWriteArrayList<>();
    private Channel channel;

    @BeforeAll
    static void start() throws Exception {
        broker = new PrivateBroker();
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(broker.url());
        connection = factory.newConnection();
    }

    @AfterAll
    static void stop() throws Exception {
        if (broker != null) {
            broker.stop();
        }
    }

    @BeforeEach
    void open() throws Exception {
        channel = connection.createChannel();
    }

    @AfterEach
    void close() throws Exception {
        channel.queueDelete(Wire.GATED);
        channel.close();
    }

    /** Takes unique jobs, as a leader does. An empty answer is none. */
    private void decides(String... answers) throws Exception {
        Queue<String> next = new ArrayDeque<>(List.of(answers));
        channel.queueDeclare(Wire.GATED, true, false, false, null);
        channel.basicConsume(Wire.GATED, true, (tag, delivery) -> {
            jobs.add(Json.object(delivery.getBody()));
            String answer = next.remove();
            if (!answer.isEmpty()) {
                AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().correlationId(delivery.getProperties().getCorrelationId()).build();
                channel.basicPublish("", delivery.getProperties().getReplyTo(), properties, answer.getBytes(StandardCharsets.UTF_8));
            }
        }, tag -> { });
    }

    @Test
    void theLeaderSaysWhichJobStays() throws Exception {
        decides("{\"status\":201,\"jid\":\"mine\"}", OTHER, "{\"status\":200,\"jid\":\"other\"}", "{\"status\":503,\"reason\":\"it is full\"}");
        try (Client client = Client.of(broker.url())) {
            assertEquals(new Decision("mine", false), client.enqueueUnique(NewJob.of("A", 1).jid("mine")));
            NewJob keyed = NewJob.of("A").jid("mine").at(Instant.ofEpochSecond(1_800_000_000)).unique(Unique.key("k").forAtLeast(Duration.ofMinutes(1)));
            for (int i = 0; i < 2; i++) {
                assertEquals(new Decision("other", true), client.enqueueUnique(keyed));
            }
            RefusedException refused = assertThrows(RefusedException.class, () -> client.enqueueUnique(NewJob.of("A")));
            assertEquals("it is full", refused.getMessage());
        }
        assertEquals(Map.of("unique", Map.of()), jobs.get(0).get("gate"));
        Map<?, ?> later = (Map<?, ?>) jobs.get(2).get("gate");
        assertEquals(Map.of("key", "k", "for", 60L), later.get("unique"));
        assertEquals(1.8e9, ((Number) later.get("at")).doubleValue());
    }

    @Test
    void noDecisionComes() throws Exception {
        decides("", "");
        Client client = Client.of(broker.url());
        UndecidedException late = assertThrows(UndecidedException.class,
                () -> client.enqueueUnique(NewJob.of("A").jid("late"), Duration.ofSeconds(2)));
        assertEquals("late", late.jid());
        assertEquals("job late is published, and a leader will decide whether it is a duplicate: no leader has answered before the deadline",
                late.getMessage());
        CompletableFuture<Decision> asked = CompletableFuture.supplyAsync(() -> client.enqueueUnique(NewJob.of("A")));
        while (jobs.size() < 2) { // the test's timeout ends it
            Thread.sleep(10);
        }
        Thread.sleep(100); // for the confirm
        client.close();
        Exception ended = assertThrows(Exception.class, asked::get);
        assertTrue(ended.getCause() instanceof UndecidedException, ended.getCause().toString());
    }

    @Test
    void aJobThatIsNotPublishedIsNotUndecided() {
        try (Client away = Client.of("amqp://guest:guest@127.0.0.1:1/")) {
            assertThrows(UnreachableException.class, () -> away.enqueueUnique(NewJob.of("A"), Duration.ofMillis(200)));
            assertThrows(InvalidException.class, () -> away.enqueueUnique(NewJob.of("A").unique(Unique.of().putOffAtMost(Duration.ofSeconds(3)))));
            assertThrows(InvalidException.class, () -> away.enqueue(NewMessage.of("orders", "", "x").job().in(Duration.ofMinutes(1)).unique(Unique.of())));
            assertThrows(InvalidException.class, () -> away.enqueue(NewMessage.of("orders", "", "x").job().in(Duration.ofMinutes(1)).limitKey("k")));
            PeriodicJob periodic = PeriodicJob.of("a", NewJob.of("A").unique(Unique.of())).every(Duration.ofMinutes(1));
            assertThrows(InvalidException.class, () -> away.define("app", List.of(periodic)));
        }
        try (Client client = Client.of(broker.url())) { // there is no jobs.gated
            assertThrows(RefusedException.class, () -> client.enqueueUnique(NewJob.of("A"), Duration.ofSeconds(1)));
        }
    }

    @Test
    void middlewareSeesUniqueJobs() throws Exception {
        decides(OTHER);
        ClientMiddleware middleware = (job, next) -> job.className().equals("Swallowed") ? null : next.enqueue(job.tags("seen"));
        try (Client client = Client.builder(broker.url()).use(middleware).build()) {
            assertNull(client.enqueueUnique(NewJob.of("Swallowed")));
            NewJob given = NewJob.of("A");
            assertEquals("other", client.enqueueUnique(given).jid());
            assertNull(given.unique());
        }
        assertEquals(List.of("seen"), jobs.get(0).get("tags"));
        assertFalse(jobs.get(0).containsKey("scheduled_at"));
    }
}
