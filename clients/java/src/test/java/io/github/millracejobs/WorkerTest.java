package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

class WorkerTest {
    private static final String URL = "amqp://guest:guest@127.0.0.1:1/";
    private static final Duration SOON = Duration.ofSeconds(10); // below the default timeout of 30 s

    @Test
    void whatMakesNoSense() {
        for (WorkerBuilder bad : List.of(Worker.builder(URL).queues(), Worker.builder(URL).queues("a", "a"), Worker.builder(URL).queues(Map.of("a", 0)),
                Worker.builder(URL).queues("a\n"), Worker.builder(URL).queues("é".repeat(101)), Worker.builder(URL).queues("\ud800"),
                Worker.builder(URL).concurrency(0), Worker.builder(URL).lane(Lane.strict("a", "x")).lane(Lane.strict("a", "y")),
                Worker.builder(URL).tag("a:b"), Worker.builder("redis://x"))) {
            assertThrows(IllegalArgumentException.class, bad::build);
        }
        assertThrows(IllegalArgumentException.class, () -> Client.of("http://x"));
    }

    @Test
    void lanes() {
        assertEquals(List.of("default"), Worker.builder(URL).build().pools.get(0).lane.queues);
        Worker worker = Worker.builder(URL).queues(Map.of("a", 3, "b", 1)).concurrency(2).lane(Lane.strict("quick", "c").concurrency(4)).build();
        assertEquals(List.of(4, 4), worker.pools.stream().map(Pool::prefetch).toList(), "twice the threads where queues are chosen from");
    }

    private static Hand hand(Lane lane) {
        Hand hand = new Hand(lane);
        int[][] arrivals = {{1, 0}, {0, 0}, {1, 5}, {1, 5}, {0, 9}};
        for (int tag = 0; tag < arrivals.length; tag++) {
            AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().priority(arrivals[tag][1]).build();
            hand.put(arrivals[tag][0], new Arrival(tag, false, properties, new byte[0], 0));
        }
        return hand;
    }

    @Test
    void strictQueues() {
        Hand hand = hand(Lane.strict("x", "first", "second"));
        List<Long> order = new ArrayList<>();
        for (int queue = hand.next(q -> true); queue >= 0; queue = hand.next(q -> true)) {
            order.add(hand.take(queue).tag());
        }
        assertEquals(List.of(4L, 1L, 2L, 3L, 0L), order);
        assertTrue(hand.isEmpty());
    }

    @Test
    void whatMayNotBeginStaysAtHand() {
        Hand hand = hand(Lane.strict("x", "first", "second"));
        assertEquals(1, hand.next(q -> q != 0));
        assertEquals(-1, hand.next(q -> false));
        assertEquals(List.of(2L, 3L, 0L), hand.empty(1).stream().map(Arrival::tag).toList());
        assertEquals(7, hand.waited(0, 7));
        assertEquals(0, hand.waited(1, 7));
    }

    @Test
    void weightedQueues() {
        Map<String, Integer> weights = new LinkedHashMap<>();
        weights.put("often", 9);
        weights.put("rarely", 1);
        Hand hand = hand(Lane.weighted("x", weights));
        int often = 0;
        for (int i = 0; i < 2000; i++) {
            often += hand.next(q -> true) == 0 ? 1 : 0;
        }
        assertTrue(1600 < often && often < 1980, "often " + often);
        assertEquals(1, hand.next(q -> q == 1));
    }

    @Test
    @Timeout(60)
    void stoppedWithoutABrokerItEnds() throws InterruptedException {
        List<String> said = new CopyOnWriteArrayList<>();
        Worker worker = Worker.builder(URL).build().onQuiet(() -> said.add("quiet")).onShutdown(() -> said.add("shutdown"));
        Thread thread = new Thread(worker::run);
        thread.start();
        worker.stop();
        thread.join();
        assertEquals(List.of("quiet", "shutdown"), said);
        assertThrows(IllegalStateException.class, worker::run);
        worker.close();
    }

    @Test
    @Timeout(60)
    void anInterruptStopsIt() throws InterruptedException {
        Worker worker = Worker.builder(URL).build();
        boolean[] interrupted = new boolean[1];
        Thread thread = new Thread(() -> {
            worker.run();
            interrupted[0] = Thread.currentThread().isInterrupted();
        });
        thread.start();
        thread.interrupt();
        thread.join();
        assertTrue(interrupted[0]);
    }

    @Test
    void commands() {
        Worker worker = Worker.builder(URL).tag("t").build();
        for (String body : List.of("no JSON", "[]", "{\"op\":\"pause\",\"identity\":\"else\",\"queue\":\"q\"}", "{\"op\":\"nonsense\",\"identity\":\"*\"}",
                "{\"op\":7,\"identity\":\"*\"}", "[".repeat(100_000))) {
            Control.obey(worker, body.getBytes(StandardCharsets.UTF_8));
        }
        assertFalse(worker.isPaused("q"));
        Control.obey(worker, ("{\"op\":\"pause\",\"identity\":\"" + worker.identity() + "\",\"queue\":\"q\"}").getBytes(StandardCharsets.UTF_8));
        assertTrue(worker.isPaused("q"));
        Control.obey(worker, "{\"op\":\"resume\",\"identity\":\"*\",\"queue\":\"q\"}".getBytes(StandardCharsets.UTF_8));
        assertFalse(worker.isPaused("q"));
    }

    @Test
    void heartbeat() {
        Worker worker = Worker.builder(URL).queues(Map.of("a", 3)).lane(Lane.strict("b", "b", "a").concurrency(2)).label("zone", "x").build();
        Map<String, Object> beat = Json.object(Json.write(Heartbeat.of(worker, 7)));
        assertEquals(7L, beat.get("concurrency"));
        assertEquals(List.of("a", "b"), beat.get("queues"));
        assertEquals(Map.of("a", 3L), beat.get("weights"));
        assertEquals("running", beat.get("state"));
        assertEquals(7L, beat.get("rtt_us"));
        assertTrue((Long) beat.get("rss_kb") > 1000);
        worker.quiet();
        assertEquals("quiet", worker.state());
        worker.stop();
        assertEquals("stopping", worker.state());
    }

    @Test
    void theDeadAreForgotten() {
        Begins begins = new Begins();
        BeginKey key = new BeginKey("j", "b");
        for (String record : List.of("{\"type\":\"opened\",\"process\":\"a\",\"queue\":\"x\",\"queues\":[\"q\"],\"at\":1.0}",
                "{\"type\":\"died\",\"process\":\"a\",\"at\":2.0}",
                "{\"type\":\"begun\",\"process\":\"a\",\"jid\":\"j\",\"body\":\"b\",\"blames\":\"\",\"at\":2.0}")) {
            begins.apply(record.getBytes(StandardCharsets.UTF_8));
        }
        assertEquals(1, begins.deaths(key, "me", Set.of()));
        for (int i = 0; i < 1000; i++) {
            begins.apply("{\"type\":\"else\",\"process\":\"b\",\"at\":300000}".getBytes(StandardCharsets.UTF_8));
        }
        assertEquals(0, begins.deaths(key, "me", Set.of()));
        assertNull(begins.apply("[]".getBytes(StandardCharsets.UTF_8)));
    }

    @Test
    void metricsThatDoNotFitAreCounted() throws Unreadable {
        Worker worker = Worker.builder(URL).build();
        Job job = Job.read("{\"class\":\"A\"}".getBytes(StandardCharsets.UTF_8), "q", Map.of(), "", null);
        for (int i = 0; i < 10_003; i++) {
            worker.metrics.add(new Metric(job, Outcome.SUCCEEDED, 2, 1, 1));
        }
        assertEquals(3, worker.metrics.dropped());
        worker.close();
    }

    @Test
    @Timeout(60)
    void aPublishFailsByItsDeadline() {
        try (Client client = Client.of(URL)) {
            assertTimeout(SOON, () -> {
                assertThrows(UnreachableException.class, () -> client.enqueue(NewJob.of("A"), Duration.ofMillis(300)));
                BulkException bulk = assertThrows(BulkException.class,
                        () -> client.enqueueBulk(List.of(NewJob.of("A"), NewJob.of("")), Duration.ofMillis(300)));
                assertEquals(List.of(UnreachableException.class, InvalidException.class),
                        bulk.errors().values().stream().map(Object::getClass).toList());
            });
        }
        try (Client client = Client.builder(URL).timeout(Duration.ofMillis(300)).build()) {
            assertTimeout(SOON, () -> assertThrows(UnreachableException.class, () -> client.enqueue("A")));
        }
    }

    @Test
    @Timeout(60)
    void failFastDoesNotWaitForABroker() {
        try (Client client = Client.builder(URL).failFast(true).build()) {
            assertTimeout(SOON, () -> {
                for (int i = 0; i < 2; i++) {
                    String message = assertThrows(UnreachableException.class, () -> client.enqueue("A")).getMessage();
                    assertTrue(message.contains("refused"), message);
                }
                BulkException bulk = assertThrows(BulkException.class, () -> client.enqueueBulk(List.of(NewJob.of("A"), NewJob.of("B"))));
                assertEquals(Set.of(0, 1), bulk.errors().keySet());
            });
        }
    }

    @Test
    @Timeout(60)
    void middlewareDoesNotWaitForEachJobOfMany() {
        List<String> passed = new ArrayList<>();
        try (Client client = Client.builder(URL).timeout(Duration.ofMillis(300)).use((job, next) -> {
            if (job.args().get(0).equals("swallowed")) {
                return null;
            }
            String jid = next.enqueue(job); // there is no broker: a wait for its answer would throw
            passed.add(jid);
            return jid;
        }).build()) {
            BulkException bulk = assertThrows(BulkException.class, () -> client.enqueueBulk(List.of(NewJob.of("A", 1).jid("a"),
                    NewJob.of("A", "swallowed"), NewJob.of("A", new Thread()), NewJob.of("A", 2).jid("b"))));
            assertEquals(List.of("a", "b"), passed);
            assertEquals(Set.of(0, 2, 3), bulk.errors().keySet());
            assertEquals(List.of(UnreachableException.class, InvalidException.class, UnreachableException.class),
                    bulk.errors().values().stream().map(Object::getClass).toList());
            assertEquals(Arrays.asList(null, null, null, null), bulk.jids());
        }
    }

    @Test
    void aClassHasOneHandler() {
        Worker worker = Worker.builder(URL).build().handle("A", job -> { });
        String message = assertThrows(IllegalArgumentException.class, () -> worker.handle("A", job -> { })).getMessage();
        assertEquals("class A has a handler already", message);
        for (String empty : Arrays.asList("", null)) {
            assertThrows(IllegalArgumentException.class, () -> worker.handle(empty, job -> { }));
        }
        for (Executable nothing : List.<Executable>of(() -> worker.handle("B", null), () -> worker.handle("B", job -> { }, null),
                () -> worker.handle("B", String.class, null), () -> worker.handle("B", (Class<String>) null, (text, job) -> { }))) {
            assertThrows(NullPointerException.class, nothing);
        }
    }

    @Test
    @Timeout(60)
    void whatComesAfterTheStartIsRefused() throws InterruptedException {
        Lines lines = new Lines();
        Worker worker = Worker.builder(URL).logger(lines).build();
        Thread thread = new Thread(worker::run);
        thread.start();
        while (lines.with("no connection to the broker").isEmpty()) {
            Thread.sleep(10);
        }
        String message = assertThrows(IllegalStateException.class, () -> worker.handle("A", job -> { })).getMessage();
        assertEquals("a handler of class A comes too late: the worker runs already, or has stopped", message);
        assertThrows(IllegalStateException.class, () -> worker.use((job, next) -> next.run(job)));
        for (Runnable hook : List.<Runnable>of(() -> worker.onStartup(() -> { }), () -> worker.onQuiet(() -> { }), () -> worker.onShutdown(() -> { }),
                () -> worker.onFailure((job, error) -> { }), () -> worker.onDeath((job, error) -> { }))) {
            assertThrows(IllegalStateException.class, hook::run);
        }
        worker.close();
        thread.join();
        assertEquals("millrace: worker stopped  identity=" + worker.identity(), lines.only("worker stopped").text());
    }

    @Test
    void anExecutorThatTakesNothingLosesNothing() {
        List<Runnable> taken = new ArrayList<>();
        boolean[] full = {true};
        Pool pool = new Pool(Lane.strict("x", "q").concurrency(2), task -> {
            if (full[0]) {
                throw new RejectedExecutionException("full");
            }
            taken.add(task);
        });
        assertThrows(RejectedExecutionException.class, () -> pool.begin(() -> { }));
        assertEquals(0, pool.busy());
        full[0] = false;
        pool.begin(() -> { });
        assertEquals(1, pool.busy());
        assertEquals(1, taken.size());
        Pool direct = new Pool(Lane.strict("x", "q"), Runnable::run);
        synchronized (direct) {
            assertThrows(RejectedExecutionException.class, () -> direct.begin(() -> { }), "jobs would run where deliveries come from");
        }
        Hand hand = hand(Lane.strict("x", "first", "second"));
        Arrival arrival = hand.take(1);
        hand.putFirst(1, arrival);
        assertEquals(arrival, hand.take(1));
    }

    @Test
    void aClosedClientSaysSo() {
        Client client = Client.of(URL);
        client.close();
        assertThrows(ClosedException.class, () -> client.enqueue("A"));
    }
}
