package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Jobs that limits count, with a real broker, and a queue that stands for the leader's. */
@Timeout(120)
class LimitsTest {
    private static PrivateBroker broker;
    private static Connection connection;

    private final List<String> ran = new CopyOnWriteArrayList<>();
    private final List<Map<String, Object>> claims = new CopyOnWriteArrayList<>();
    private Channel channel;
    private Worker worker;
    private Thread running;

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
    void queues() throws Exception {
        channel = connection.createChannel();
        broker.queue("q");
        for (String name : List.of(Wire.RETRIES, Wire.DEAD, Wire.ENDS, Wire.GATED, Wire.SCHEDULED)) {
            channel.queueDeclare(name, true, false, false, null);
            channel.queuePurge(name);
        }
    }

    @AfterEach
    void end() throws Exception {
        if (worker != null) {
            worker.close();
            running.join();
        }
        channel.queueDelete(Wire.LEADER);
        channel.close();
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        while (!condition.getAsBoolean()) { // the test's timeout ends it
            Thread.sleep(10);
        }
    }

    /** Takes the commands of workers, as a leader does. An empty answer to a claim is none. */
    private void leads(long below, String... answers) throws Exception {
        Queue<String> next = new ArrayDeque<>(List.of(answers));
        channel.queueDeclare(Wire.LEADER, false, false, false, null);
        channel.basicConsume(Wire.LEADER, true, (tag, delivery) -> {
            Map<String, Object> command = Json.object(delivery.getBody());
            String reply = "{\"status\":200,\"paused\":[],\"claim_below\":" + below + "}";
            if ("claim".equals(command.get("command"))) {
                claims.add(command);
                reply = next.isEmpty() ? "" : next.remove();
            }
            if (!reply.isEmpty()) {
                channel.basicPublish("", delivery.getProperties().getReplyTo(), null, reply.getBytes(StandardCharsets.UTF_8));
            }
        }, tag -> { });
    }

    private static final String RUN = "{\"status\":200,\"claim\":\"run\"}";
    private static final String DROP = "{\"status\":200,\"claim\":\"drop\"}";

    private void works(Duration stopTimeout) {
        worker = Worker.builder(broker.url()).queues("q").concurrency(1).stopTimeout(stopTimeout).logger(new Lines()).build();
        worker.handle("Run", job -> ran.add(job.jid()));
        worker.handle("Fail", job -> {
            throw new IllegalStateException("fails");
        });
        worker.handle("Kill", job -> {
            throw new Kill("no use");
        });
        running = new Thread(worker::run);
        running.start();
    }

    private void stops() throws Exception {
        worker.stop();
        running.join();
    }

    /** Puts a job into the queue as a sidecar does. */
    private void fire(String jid, String className, Map<String, Object> headers) throws Exception {
        fire("{\"jid\":\"" + jid + "\",\"class\":\"" + className + "\",\"queue\":\"q\",\"gate\":{\"key\":\"k\"}}", headers);
    }

    private static void fire(String body, Map<String, Object> headers) throws Exception {
        try (Channel firing = connection.createChannel()) {
            firing.confirmSelect();
            firing.basicPublish("", "queue.q", new AMQP.BasicProperties.Builder().headers(headers).build(), body.getBytes(StandardCharsets.UTF_8));
            firing.waitForConfirms();
        }
    }

    private static Map<String, Object> slot(String jid, Object... more) {
        Map<String, Object> headers = new HashMap<>(Map.of("millrace-slot", "slot-" + jid, "millrace-epoch", 7L, "millrace-op", "fired"));
        for (int i = 0; i < more.length; i += 2) {
            headers.put((String) more[i], more[i + 1]);
        }
        return headers;
    }

    private static List<Map<String, Object>> take(String queue) throws Exception {
        return broker.messages(queue).stream().map(message -> Json.object(message.getBody())).toList();
    }

    private static List<String> slots(List<Map<String, Object>> records) {
        return records.stream().map(record -> (String) record.get("slot")).toList();
    }

    @Test
    void limitedJobsGoToTheGatedOnes() throws Exception {
        try (Client client = Client.of(broker.url())) {
            client.enqueue(NewJob.of("A").queue("imports").limitKey("ann"));
            client.enqueueBulk(List.of(NewJob.of("A").limited(true), NewJob.of("A").limited(true).limitKey("bob")));
            client.enqueueIn(Duration.ofMinutes(1), NewJob.of("A").limitKey("ann"));
        }
        List<Map<String, Object>> gated = take(Wire.GATED);
        assertEquals(List.of(Map.of("key", "ann"), Map.of(), Map.of("key", "bob")), gated.stream().map(job -> job.get("gate")).toList());
        assertEquals("imports", gated.get(0).get("queue"));
        Map<?, ?> scheduled = (Map<?, ?>) take(Wire.SCHEDULED).get(0).get("job");
        assertEquals(Map.of("key", "ann"), scheduled.get("gate"));
    }

    @Test
    void keysAreChecked() {
        for (String wrong : List.of("a\nb", "\ud800", "é".repeat(101))) {
            assertThrows(InvalidException.class, () -> Job.of(NewJob.of("A").limitKey(wrong)));
        }
        assertThrows(InvalidException.class, () -> Job.of(NewJob.of("A").field("gate", Map.of())));
        Job limited = Job.of(NewJob.of("A").limitKey("é".repeat(100)));
        assertEquals("é".repeat(100), limited.limitKey());
        assertEquals(Map.of(), limited.fields());
        assertFalse(Job.of(NewJob.of("A").limited(false)).isLimited());
        assertTrue(Job.of(NewJob.of("A").limited(true)).isLimited());
    }

    @Test
    void endsAreReportedBeforeTheDeliveryIsAnswered() throws Exception {
        leads(7);
        channel.queueDelete(Wire.ENDS);
        fire("done", "Run", slot("done"));
        works(Duration.ofSeconds(20));
        until(() -> ran.size() == 1);
        fire("failed", "Fail", slot("failed"));
        fire("killed", "Kill", slot("killed"));
        fire("no job", slot("rejected"));
        fire("free", "Run", Map.of());
        Thread.sleep(300);
        assertEquals(4, broker.ready("queue.q"), "the lane is busy with the job that has not been reported");
        channel.queueDeclare(Wire.ENDS, true, false, false, null);
        until(() -> ran.size() == 2);
        stops();
        List<Map<String, Object>> ends = take(Wire.ENDS);
        assertEquals(List.of("slot-done", "slot-failed", "slot-killed", "slot-rejected"), slots(ends));
        for (Map<String, Object> end : ends) {
            assertEquals("ended", end.get("type"));
            assertEquals(worker.identity, end.get("process"));
            assertEquals(Wire.now(), ((Number) end.get("at")).doubleValue(), 60);
        }
        assertEquals(List.of("failed"), take(Wire.RETRIES).stream().map(record -> record.get("jid")).toList());
        assertEquals(List.of("killed"), take(Wire.DEAD).stream().map(record -> record.get("jid")).toList());
        assertEquals(List.of(), claims);
        assertEquals(0, broker.ready("queue.q"));
    }

    @Test
    void whatIsNotReportedIsNotAnswered() throws Exception {
        leads(0);
        channel.queueDelete(Wire.ENDS);
        fire("kept", "Run", slot("kept"));
        works(Duration.ofMillis(200));
        until(() -> ran.size() == 1);
        stops();
        until(() -> broker.ready("queue.q") == 1);
    }

    @Test
    void whatMayHaveBegunIsClaimed() throws Exception {
        leads(7, RUN, DROP, "{\"status\":503}", "", RUN);
        works(Duration.ofSeconds(20));
        fire("new", "Run", slot("new"));
        until(() -> ran.contains("new"));
        assertEquals(List.of(), claims);
        fire("flagged", "Run", slot("flagged", "millrace-claim", "1"));
        fire("dropped", "Run", slot("dropped", "millrace-op", "refired"));
        fire("old", "Run", slot("old", "millrace-epoch", 6L));
        fire("free", "Run", Map.of("millrace-claim", "1"));
        until(() -> ran.contains("free"));
        stops();
        assertEquals(List.of("new", "flagged", "old", "free"), ran);
        assertEquals(List.of("slot-flagged", "slot-dropped", "slot-old", "slot-old", "slot-old"), slots(claims));
        assertEquals(Map.of("command", "claim", "slot", "slot-flagged", "process", worker.identity), claims.get(0));
        assertEquals(List.of("slot-new", "slot-flagged", "slot-old"), slots(take(Wire.ENDS)));
        assertEquals(0, broker.ready("queue.q"), "the dropped job is acknowledged");
    }

    @Test
    void whatIsDeliveredAgainIsClaimed() throws Exception {
        leads(0, DROP, RUN);
        fire("dropped", "Run", slot("dropped"));
        fire("runs", "Run", slot("runs"));
        try (Channel taker = connection.createChannel()) {
            taker.basicGet("queue.q", false);
            taker.basicGet("queue.q", false);
        }
        until(() -> broker.ready("queue.q") == 2);
        works(Duration.ofSeconds(20));
        until(() -> ran.size() == 1);
        stops();
        assertEquals(List.of("runs"), ran);
        assertEquals(List.of("slot-dropped", "slot-runs"), slots(claims));
        assertEquals(List.of("slot-runs"), slots(take(Wire.ENDS)));
        assertEquals(0, broker.ready("queue.q"));
    }

    @Test
    void withoutAnAnswerTheJobGoesBack() throws Exception {
        fire("waits", "Run", slot("waits"));
        works(Duration.ofSeconds(20));
        until(() -> broker.ready("queue.q") == 0);
        Thread.sleep(500);
        stops();
        until(() -> broker.ready("queue.q") == 1);
        assertEquals(List.of(), ran);
        assertEquals(List.of(), take(Wire.ENDS));
    }

    @Test
    void jobsForAFullQueueAreRefused() throws Exception {
        channel.exchangeDeclare("jobs.direct", "direct", true);
        channel.queueDeclare("jobs.full", true, false, false, Map.of("x-max-length", 0, "x-overflow", "reject-publish"));
        channel.queueBind("jobs.full", "jobs.direct", "full");
        try (Client client = Client.of(broker.url())) {
            RefusedException refused = assertThrows(RefusedException.class, () -> client.enqueue(NewJob.of("Import").queue("full")));
            assertTrue(refused.getMessage().endsWith("the queue is full or unavailable, try again later"), refused.getMessage());
            channel.queueUnbind("jobs.full", "jobs.direct", "full");
            channel.queueBind(Wire.GATED, "jobs.direct", "full");
            assertEquals("taken", client.enqueue(NewJob.of("Import").queue("full").jid("taken")));
        }
        channel.queueDelete("jobs.full");
    }

    @Test
    void limitsAreDefinedBesidePeriodicJobs() throws Exception {
        List<Object> definitions = new CopyOnWriteArrayList<>();
        channel.queueDeclare(Wire.LEADER, false, false, false, null);
        channel.basicConsume(Wire.LEADER, true, (tag, delivery) -> {
            definitions.add(Json.object(delivery.getBody()).get("definitions"));
            channel.basicPublish("", delivery.getProperties().getReplyTo(), null, "{\"status\":200,\"defined\":{\"made\":[\"imports\"]}}".getBytes(
                    StandardCharsets.UTF_8));
        }, tag -> { });
        Limit imports = Limit.of("imports").queues("imports").classes("Import").per(Limit.Per.KEY).concurrency(3)
                .rate(Limit.Rate.of(100, Duration.ofMinutes(1))).concurrency("customer-42", 10)
                .rate("customer-42", new Limit.Rate(5, Duration.ofMillis(1500), 2)).paused();
        try (Client client = Client.of(broker.url())) {
            assertEquals(List.of("imports"), client.define("app", null, List.of(imports)).made());
            client.define("app", List.of(), List.of());
            client.define("app", List.of(PeriodicJob.of("poll", NewJob.of("Poll").limitKey("k")).every(Duration.ofMinutes(1))));
            client.define("app", null, null, List.of(GovernedQueue.of("imports").key("args.0.customer_id").maxWaiting(100_000)
                    .weight("customer-42", 3).weight("b", 2).ahead(20).paused()));
            assertThrows(InvalidException.class, () -> client.define("app", null, (List<Limit>) null));
            assertThrows(InvalidException.class, () -> client.define("app", null, null, List.of(GovernedQueue.of("q").ahead(0))));
        }
        String wanted = """
                {"all":[{"source":"app","limits":[{"name":"imports","queues":["imports"],"classes":["Import"],"per":["key"],"concurrency":3,
                "rate":{"jobs":100,"seconds":60,"burst":1},
                "overrides":{"customer-42":{"concurrency":10,"rate":{"jobs":5,"seconds":1.5,"burst":2}}},"paused":true}]},
                {"source":"app","periodic_jobs":[],"limits":[]},
                {"source":"app","periodic_jobs":[{"name":"poll","every":60,
                "job":{"class":"Poll","args":[],"queue":"default","gate":{"key":"k"}}}]},
                {"source":"app","queues":[{"name":"imports","key":"args.0.customer_id","max_waiting":100000,
                "weights":{"customer-42":3,"b":2},"ahead":20,"paused":true}]}]}""";
        assertEquals(Json.object(wanted.getBytes(StandardCharsets.UTF_8)).get("all"), definitions);
    }
}
