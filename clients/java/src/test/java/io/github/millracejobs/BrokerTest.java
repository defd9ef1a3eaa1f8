package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import example.Mails;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.event.Level;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.actuate.endpoint.HealthEndpoint;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.event.ContextClosedEvent;

/** Behaviour that needs a real broker. */
@Timeout(180)
class BrokerTest {
    private static PrivateBroker broker;

    private final Lines lines = new Lines();

    /** The actions of a test while its worker runs. */
    private interface Work {
        void run() throws Exception;
    }

    private record Mail(String to, int pages) {}

    @BeforeAll
    static void start() throws Exception {
        broker = new PrivateBroker();
    }

    @AfterAll
    static void stop() throws Exception {
        if (broker != null) {
            broker.stop();
        }
    }

    @BeforeEach
    void empty() throws Exception {
        broker.queue("q");
        broker.take(Wire.RETRIES);
        broker.take(Wire.DEAD);
    }

    private WorkerBuilder builder() {
        return Worker.builder(broker.url()).queues("q").concurrency(4).logger(lines);
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        while (!condition.getAsBoolean()) { // the test's timeout ends it
            Thread.sleep(10);
        }
    }

    /** Runs a worker while an action runs. */
    private static void with(Worker worker, Work work) throws Exception {
        Thread thread = new Thread(worker::run);
        thread.start();
        try {
            work.run();
        } finally {
            worker.close();
            thread.join();
        }
    }

    /**
     * Takes commands as a leader does while a test runs. The replies are given in order; an empty
     * one is no answer.
     */
    private static List<Map<String, Object>> leading(List<String> replies, Work work) throws Exception {
        List<Map<String, Object>> commands = new CopyOnWriteArrayList<>();
        Iterator<String> next = replies.iterator();
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(broker.url());
        try (Connection connection = factory.newConnection(); Channel channel = connection.createChannel()) {
            channel.queueDeclare(Wire.LEADER, false, false, false, null);
            channel.basicConsume(Wire.LEADER, true, (tag, delivery) -> {
                commands.add(Json.object(delivery.getBody()));
                String reply = next.hasNext() ? next.next() : "";
                if (!reply.isEmpty()) {
                    channel.basicPublish("", delivery.getProperties().getReplyTo(), null, reply.getBytes(StandardCharsets.UTF_8));
                }
            }, tag -> { });
            work.run();
            channel.queueDelete(Wire.LEADER);
        }
        return commands;
    }

    private static final PeriodicJob NIGHTLY = PeriodicJob.of("nightly", NewJob.of("Report", "daily", 1L << 60).queue("reports").retry(2))
            .cron("0 3 * * *").zone(ZoneId.of("Europe/Stockholm")).jitter(Duration.ofMillis(1500)).expiresIn(Duration.ofHours(1))
            .grace(Duration.ZERO).catchUp(PeriodicJob.CatchUp.ALL).catchUpMax(7).skipOverlaps().except("2026-12-24").paused();

    @Test
    void periodicJobsAreDefined() throws Exception {
        String did = "{\"status\":200,\"defined\":{\"made\":[\"nightly\"],\"changed\":[],\"forgotten\":[\"old\"],\"unchanged\":1}}";
        PeriodicJob poll = PeriodicJob.of("poll", NewJob.of("Poll")).every(Duration.ofSeconds(90));
        List<Map<String, Object>> commands = leading(List.of(did), () -> {
            try (Client client = Client.of(broker.url())) {
                assertEquals(new Defined(List.of("nightly"), List.of(), List.of("old"), 1), client.define("billing", List.of(NIGHTLY, poll)));
            }
        });
        String expected = """
                {"source":"billing","periodic_jobs":[
                {"name":"nightly","job":{"class":"Report","args":["daily",1152921504606846976],"queue":"reports","retry":2},"cron":"0 3 * * *",
                "tz":"Europe/Stockholm","jitter":1.5,"expires_in":3600,"grace":0,"catch_up":"all","catch_up_max":7,"overlap":"skip",
                "except":["2026-12-24"],"paused":true},
                {"name":"poll","job":{"class":"Poll","args":[],"queue":"default"},"every":90}]}""";
        assertEquals("define", commands.get(0).get("command"));
        assertEquals(Json.object(expected.getBytes(StandardCharsets.UTF_8)), commands.get(0).get("definitions"));
    }

    @Test
    void defineSaysWhyNot() throws Exception {
        leading(List.of("{\"status\":400,\"reason\":\"why 400\"}", "{\"status\":409,\"reason\":\"why 409\"}"), () -> {
            Client client = Client.of(broker.url());
            assertEquals("why 400", assertThrows(InvalidException.class, () -> client.define("a", List.of(NIGHTLY))).getMessage());
            assertEquals("why 409", assertThrows(RefusedException.class, () -> client.define("a", List.of(NIGHTLY))).getMessage());
            for (NewJob wrong : List.of(NewJob.of(""), NewJob.of("A").jid("j"), NewJob.of("A", new Object()))) {
                assertThrows(InvalidException.class, () -> client.define("a", List.of(PeriodicJob.of("a", wrong))));
            }
            client.close();
            assertThrows(ClosedException.class, () -> client.define("a", List.of()));
        });
    }

    @Test
    void aCommandWithoutAnAnswerIsSentAgainWithItsId() throws Exception {
        List<Map<String, Object>> commands = leading(List.of("", "{\"status\":503,\"reason\":\"busy\"}", "{\"status\":204}"), () -> {
            try (Client client = Client.of(broker.url())) {
                assertEquals(List.of(), client.define("a", List.of(NIGHTLY)).made());
            }
        });
        assertEquals(3, commands.size());
        assertEquals(1, commands.stream().map(command -> command.get("id")).distinct().count());
    }

    @Test
    void definingWithoutALeader() throws Exception {
        Duration second = Duration.ofSeconds(1);
        try (Client client = Client.of(broker.url()); Client nowhere = Client.of("amqp://127.0.0.1:1")) {
            String message = assertThrows(RefusedException.class, () -> client.define("a", List.of(NIGHTLY), second)).getMessage();
            assertTrue(message.contains("no sidecar leads"), message);
            leading(List.of(), () -> assertThrows(UnconfirmedException.class, () -> client.define("a", List.of(NIGHTLY), second)));
            assertThrows(UnreachableException.class, () -> nowhere.define("a", List.of(NIGHTLY), second));
        }
    }

    @Test
    void whatIsNotConfirmedCanBeEnqueuedAgain() throws Exception {
        try (Client client = Client.of(broker.url())) {
            client.enqueue(NewJob.of("A").queue("q"));
            UnconfirmedException one;
            BulkException many;
            broker.freeze();
            try {
                one = assertThrows(UnconfirmedException.class, () -> client.enqueue(NewJob.of("A").queue("q"), Duration.ofMillis(500)));
                many = assertThrows(BulkException.class, () -> client.enqueueBulk(
                        List.of(NewJob.of("A").queue("q"), NewJob.of("A").queue("q").jid("mine")), Duration.ofMillis(500)));
            } finally {
                broker.thaw();
            }
            assertTrue(one.jid().matches("[0-9a-f]{32}"), one.jid());
            assertTrue(one.getMessage().contains(one.jid()), one.getMessage());
            List<String> jids = many.errors().values().stream().map(e -> assertInstanceOf(UnconfirmedException.class, e).jid()).toList();
            assertEquals("mine", jids.get(1));
            assertEquals(one.jid(), client.enqueue(NewJob.of("A").queue("q").jid(one.jid())));
            until(() -> broker.ready("queue.q") == 5); // the frozen broker has received all of them
            List<String> there = broker.take("queue.q");
            assertEquals(2, there.stream().filter(one.jid()::equals).count());
            assertTrue(there.containsAll(jids), there + " has " + jids);
        }
    }

    @Test
    void whatWasSentWhenTheClientWasClosedIsUnconfirmed() throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool(Waits.daemons("enqueues"));
        try (MutedProxy proxy = new MutedProxy(broker.url())) {
            Client client = Client.of(proxy.url());
            client.enqueue(NewJob.of("A").queue("q"));
            proxy.mute();
            NewJob job = NewJob.of("A").queue("q");
            Future<String> one = pool.submit(() -> client.enqueue(job.copy().jid("one"), Duration.ofMinutes(2)));
            Future<List<String>> many = pool.submit(() -> client.enqueueBulk(List.of(job.copy().jid("two")), Duration.ofMinutes(2)));
            until(() -> broker.ready("queue.q") == 3);
            client.close();
            Throwable error = assertThrows(ExecutionException.class, one::get).getCause();
            assertEquals("one", assertInstanceOf(UnconfirmedException.class, error).jid());
            assertEquals("job one is not confirmed: the client was closed before the broker answered", error.getMessage());
            BulkException bulk = assertInstanceOf(BulkException.class, assertThrows(ExecutionException.class, many::get).getCause());
            assertEquals("two", assertInstanceOf(UnconfirmedException.class, bulk.errors().get(0)).jid());
            assertThrows(ClosedException.class, () -> client.enqueue(job), "which was not sent");
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void whatTheBrokerReturnsIsPublishedAgain() throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool(Waits.daemons("enqueues"));
        try (MutedProxy proxy = new MutedProxy(broker.url()); Client client = Client.of(proxy.url())) {
            NewJob later = NewJob.of("A").queue("later");
            Future<String> one = pool.submit(() -> client.enqueue(later.copy().jid("j0")));
            Future<List<String>> many = pool.submit(() -> client.enqueueBulk(
                    List.of(later.copy().jid("j1"), NewJob.of("A").queue("q").jid("j2"), later.copy().jid("j3"))));
            // The returned job delays none of the others.
            until(() -> broker.ready("queue.q") == 1 && proxy.returns() > 1);
            broker.queue("later");
            assertEquals("j0", one.get());
            assertEquals(List.of("j1", "j2", "j3"), many.get());
            assertEquals(List.of("j0", "j1", "j3"), broker.take("queue.later").stream().sorted().toList());
            assertEquals(1, broker.ready("queue.q"));
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void whatIsReturnedToTheLastIsRefused() {
        try (Client client = Client.of(broker.url())) {
            NewJob lost = NewJob.of("A").queue("nowhere");
            RefusedException one = assertThrows(RefusedException.class, () -> client.enqueue(lost, Duration.ofSeconds(2)));
            BulkException many = assertThrows(BulkException.class,
                    () -> client.enqueueBulk(List.of(lost, NewJob.of("A").queue("q").jid("j")), Duration.ofSeconds(2)));
            assertEquals(Set.of(0), many.errors().keySet());
            for (MillraceException error : List.of(one, many.errors().get(0))) {
                assertInstanceOf(RefusedException.class, error);
                assertTrue(error.getMessage().matches("312 NO_ROUTE: exchange jobs.direct, routing key nowhere; tried for [0-9.]+ s"), error.getMessage());
            }
            assertEquals("j", many.jids().get(1));
        }
    }

    @Test
    void aClientThatIsClosedBetweenTriesHasNotEnqueued() throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool(Waits.daemons("enqueues"));
        Throwable error = null;
        // On a busy machine the next try may have begun.
        for (int i = 0; i < 5 && !(error instanceof ClosedException); i++) {
            try (MutedProxy proxy = new MutedProxy(broker.url())) {
                Client client = Client.of(proxy.url());
                Future<String> enqueuing = pool.submit(() -> client.enqueue(NewJob.of("A").queue("nowhere")));
                until(() -> proxy.returns() > 3);
                client.close();
                error = assertThrows(ExecutionException.class, enqueuing::get).getCause();
            }
        }
        pool.shutdown();
        assertInstanceOf(ClosedException.class, error);
    }

    @Test
    void failuresAreLoggedAndHookedBeforeTheirRecords() throws Exception {
        List<String> hooked = new CopyOnWriteArrayList<>();
        IOException error = new IOException("no connection to the mail server");
        Worker worker = builder().build()
                .handle("Mail", Mail.class, (mail, job) -> {
                    assertEquals(new Mail("ann@example.com", 2), mail);
                    assertEquals("acme", job.field("tenant", String.class));
                    throw error;
                })
                .onFailure((job, why) -> {
                    assertSame(error, why);
                    hooked.add("failure of " + job.jid() + ", records: " + (broker.ready(Wire.RETRIES) + broker.ready(Wire.DEAD)));
                    throw new IllegalStateException("in the hook");
                })
                .onDeath((job, why) -> hooked.add("death of " + job.jid() + ", records: " + broker.ready(Wire.DEAD)));
        with(worker, () -> {
            NewJob job = NewJob.of("Mail", new Mail("ann@example.com", 2)).queue("q").field("tenant", "acme");
            try (Client client = Client.of(broker.url())) {
                client.enqueue(job.jid("retried"));
                until(() -> broker.ready(Wire.RETRIES) == 1);
                assertEquals(List.of("retried"), broker.take(Wire.RETRIES));
                client.enqueue(job.jid("dies").retry(0));
                until(() -> hooked.size() == 3);
            }
        });
        assertEquals(List.of("failure of retried, records: 0", "failure of dies, records: 0", "death of dies, records: 1"), hooked);
        Lines.Line line = lines.only("job failed  class=Mail jid=retried queue=q attempt=1 next=retry retry_in=");
        assertEquals(Level.WARN, line.level());
        assertSame(error, line.error());
        assertEquals(Level.WARN, lines.only("jid=dies queue=q attempt=1 next=dead reason=exhausted error_class=java.io.IOException").level());
        assertEquals(List.of(Level.ERROR, Level.ERROR), lines.with("hook failure failed").stream().map(Lines.Line::level).toList());
        assertEquals(Level.INFO, lines.only("worker started").level());
        assertEquals("millrace: worker started  version=0.1.0 identity=" + worker.identity() + " queues=q concurrency=4", lines.only("started").text());
        assertEquals("millrace: worker stopped  identity=" + worker.identity(), lines.only("worker stopped").text());
    }

    @Test
    void jobsRunOnTheProgramsExecutor() throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool(work -> new Thread(work, "mine"));
        AtomicInteger refused = new AtomicInteger();
        Set<String> threads = ConcurrentHashMap.newKeySet();
        List<String> done = new CopyOnWriteArrayList<>();
        CyclicBarrier four = new CyclicBarrier(4);
        Worker worker = builder().executor(task -> {
            if (refused.incrementAndGet() <= 3) {
                throw new RejectedExecutionException("too busy");
            }
            pool.execute(task);
        }).build().handle("A", job -> {
            threads.add(Thread.currentThread().getName());
            four.await(100, TimeUnit.SECONDS); // as many run concurrently as the lane allows
            done.add(job.jid());
        });
        with(worker, () -> {
            List<NewJob> jobs = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                jobs.add(NewJob.of("A").queue("q"));
            }
            try (Client client = Client.of(broker.url())) {
                List<String> jids = client.enqueueBulk(jobs);
                until(() -> done.size() == 8);
                assertEquals(Set.copyOf(jids), Set.copyOf(done));
            }
        });
        pool.shutdown();
        assertEquals(Set.of("mine"), threads);
        assertEquals("millrace: the executor takes no job of lane default, trying again: too busy", lines.only("the executor").text());
        assertEquals(0, broker.ready("queue.q"));
    }

    @Test
    void whatHangsAtAStopIsHandedBack() throws Exception {
        CountDownLatch began = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        Worker worker = builder().stopTimeout(Duration.ofMillis(100)).build().handle("Hang", job -> {
            began.countDown();
            go.await();
            throw new IllegalStateException("too late");
        });
        try (Client client = Client.of(broker.url())) {
            with(worker, () -> {
                client.enqueue(NewJob.of("Hang").queue("q").jid("j"));
                began.await();
            });
        }
        assertEquals(List.of("j"), broker.take("queue.q"));
        assertEquals(new Lines.Line(Level.WARN, "millrace: job handed back, its handler did not end within the stop timeout  class=Hang jid=j queue=q attempt=1", null),
                lines.only("handed back"));
        go.countDown();
        String dropped = "the outcome is dropped, the broker delivers the job again  class=Hang jid=j queue=q attempt=1 reason=\"handed back before it ended\"";
        until(() -> !lines.with(dropped).isEmpty());
        assertEquals(Level.INFO, lines.only(dropped).level());
        assertEquals(0, broker.ready(Wire.RETRIES));
    }

    @Test
    void middlewareSeesTheJidOfOneThatIsConfirmed() throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        try (Client client = Client.builder(broker.url()).use((job, next) -> {
            String jid = next.enqueue(job);
            seen.add(jid + " " + broker.ready("queue.q"));
            return jid;
        }).build()) {
            String jid = client.enqueue(NewJob.of("A").queue("q"));
            List<String> jids = client.enqueueBulk(List.of(NewJob.of("A").queue("q"), NewJob.of("A").queue("q")));
            assertEquals(List.of(jid + " 1", jids.get(0) + " 1", jids.get(1) + " 1"), seen, "many are published behind it");
            assertEquals(List.of(jid, jids.get(0), jids.get(1)), broker.take("queue.q"));
        }
    }

    @Test
    void aDelayedMessageIsAScheduledJob() throws Exception {
        try (Client client = Client.of(broker.url())) {
            String jid = client.publishIn(Duration.ofMinutes(1),
                    NewMessage.of("orders", "order.created", new byte[] {(byte) 0xff}).header("tenant", "a"));
            GetResponse got = broker.messages(Wire.SCHEDULED).get(0);
            assertEquals(List.of(jid, "millrace.Message"), List.of(got.getProps().getMessageId(), got.getProps().getType()));
            Map<String, Object> record = Json.object(got.getBody());
            assertEquals(List.of("scheduled_job", jid), List.of(record.get("type"), record.get("jid")));
            assertEquals(Wire.now() + 60, ((Number) record.get("scheduled_at")).doubleValue(), 30);
            Map<?, ?> job = (Map<?, ?>) record.get("job");
            assertEquals("millrace.messages", job.get("queue"));
            assertEquals(List.of(Map.of("exchange", "orders", "routing_key", "order.created", "body_base64", "/w==",
                    "properties", Map.of("headers", Map.of("tenant", "a")))), job.get("args"));
        }
    }

    @Test
    void theSpringExampleRunsAWorkerAsLongAsTheApplication() throws Exception {
        broker.queue("mails");
        PrintStream out = System.out;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        Client client;
        Thread worker;
        try (ConfigurableApplicationContext context = application(broker.url()).run()) {
            client = context.getBean(Client.class);
            context.getBean(Mails.class).signUp("ann@example.com");
            until(() -> said.toString(StandardCharsets.UTF_8).contains("Welcome, ann@example.com, attempt 1"));
            worker = threadCalled("millrace-worker");
            HealthEndpoint health = context.getBean(HealthEndpoint.class);
            assertEquals(Status.UP, health.healthForPath("millrace").getStatus());
            context.getBean(Worker.class).stop();
            worker.join();
            assertEquals(Status.OUT_OF_SERVICE, health.healthForPath("millrace").getStatus());
        } finally {
            System.setOut(out);
        }
        assertThrows(ClosedException.class, () -> client.enqueue("Greet", "Bob"));
    }

    @Test
    void theSpringExampleEndsIfTheBrokerRefusesItsWorker() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        try {
            application(broker.url().replace("guest:guest@", "guest:wrong@"))
                    .listeners((ApplicationListener<ContextClosedEvent>) event -> closed.countDown()).run();
        } catch (IllegalStateException e) {
            // It was closed before it had started.
        }
        closed.await();
    }

    @Configuration
    @EnableAutoConfiguration
    @Import(Mails.class)
    static class Application {}

    private static SpringApplicationBuilder application(String url) {
        return new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF)
                .properties("millrace.url=" + url, "millrace.worker.queues=mails");
    }

    private static Thread threadCalled(String name) {
        return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().equals(name)).findAny().orElseThrow();
    }
}
