package io.github.millracejobs.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.millracejobs.Client;
import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Discard;
import io.github.millracejobs.Job;
import io.github.millracejobs.Middleware;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.UnreachableException;
import io.github.millracejobs.Worker;
import io.github.millracejobs.testing.DrainException;
import io.github.millracejobs.testing.Fake;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.slf4j.helpers.NOPLogger;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.actuate.endpoint.HealthEndpoint;
import org.springframework.boot.health.actuate.endpoint.IndicatedHealthDescriptor;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ApplicationContextException;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.DefaultResourceLoader;

/** Applications of Spring Boot. Nothing answers at their broker's address: what a worker does with one is tested elsewhere. */
class SpringTest {
    private static final String NOWHERE = "millrace.url=amqp://guest:guest@127.0.0.1:1/";

    record Order(int number, String name) {}

    /** What middleware and hooks have seen. */
    record Seen(List<String> texts) {}

    /** A service with handlers. */
    static class Orders {
        final List<String> seen = new ArrayList<>();

        @JobHandler(value = "Ship", timeout = "30s")
        void ship(Order order, List<String> notes, Job job) {
            seen.add(order.number() + " " + order.name() + " " + notes + " " + job.attempt());
        }

        @JobHandler("${sum.class:Sum}")
        void sum(int factor, Map<String, List<Integer>> numbers) {
            seen.add(String.valueOf(factor * numbers.get("all").stream().mapToInt(Integer::intValue).sum()));
        }

        @JobHandler("Fail")
        void fail() throws IOException {
            throw new IOException("broken");
        }

        @JobHandler("Drop")
        void drop(Job job) {
            throw new Discard("not needed");
        }
    }

    @Configuration
    @EnableAutoConfiguration
    static class App {
        @Bean
        Orders orders() {
            return new Orders();
        }

        @Bean
        MeterRegistry meters() {
            return new SimpleMeterRegistry();
        }

        @Bean
        WorkerBuilderCustomizer quiet() {
            return worker -> worker.logger(NOPLogger.NOP_LOGGER);
        }

        @Bean
        WorkerCustomizer failures(Seen seen, Orders orders) {
            return worker -> worker.onFailure((job, error) -> seen.texts().add("failed: " + error.getMessage()));
        }

        @Bean
        Middleware tenants(Seen seen) {
            return (job, next) -> {
                seen.texts().add("before " + job.className());
                next.run(job);
            };
        }

        @Bean
        ClientMiddleware enqueues(Seen seen) {
            return (job, next) -> {
                seen.texts().add("enqueues " + job.className());
                return next.enqueue(job);
            };
        }
    }

    @Configuration
    @EnableAutoConfiguration
    static class Enqueuing {
        @Bean
        WorkerCustomizer hooks() {
            return worker -> worker.onStartup(() -> { });
        }
    }

    @Configuration
    @ImportAutoConfiguration(MillraceAutoConfiguration.class)
    static class Alone {}

    /** Its handler returns before its work is done. */
    static class Careless {
        @JobHandler("Charge")
        CompletableFuture<Void> charge() {
            return new CompletableFuture<>();
        }
    }

    @Configuration
    @EnableAutoConfiguration
    static class AsynchronousApp {
        @Bean
        Careless careless() {
            return new Careless();
        }
    }

    private final List<String> seen = new ArrayList<>();

    private ConfigurableApplicationContext run(Class<?> app, String... properties) {
        return new SpringApplicationBuilder(app).web(WebApplicationType.NONE).bannerMode(Banner.Mode.OFF)
                .initializers(context -> context.getBeanFactory().registerSingleton("seen", new Seen(seen)))
                .properties(properties).run();
    }

    private static boolean runsAWorker() {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(thread -> thread.getName().equals("millrace-worker"));
    }

    @Test
    void methodsHandleJobsAsTheirTypes() {
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE)) {
            Fake client = new Fake(context.getBean(Worker.class));
            client.enqueue("Ship", new Order(7, "tea"), List.of("fragile"));
            assertEquals(1, client.drain());
            assertEquals(List.of("7 tea [fragile] 1"), context.getBean(Orders.class).seen);
            assertEquals(List.of("before Ship"), seen);
            client.enqueue("Sum", 2, Map.of("all", List.of(3, 4)));
            client.drain();
            assertEquals("14", context.getBean(Orders.class).seen.get(1));
            client.enqueue("Fail");
            assertTrue(assertThrows(DrainException.class, client::drain).getMessage().contains("broken"));
            client.enqueue("Drop");
            client.drain();
            assertTrue(seen.contains("failed: broken"));
            MeterRegistry meters = context.getBean(MeterRegistry.class);
            assertEquals(1, meters.get("millrace.jobs").tags("class", "Ship", "outcome", "success").timer().count());
            assertEquals(1, meters.get("millrace.jobs").tags("class", "Fail", "outcome", "failure").timer().count());
            assertEquals(1, meters.get("millrace.jobs").tags("class", "Drop", "outcome", "discarded").timer().count());
            assertTrue(meters.get("millrace.jobs").timer().totalTime(TimeUnit.NANOSECONDS) >= 0);
        }
    }

    @Test
    void anArgumentThatDoesNotFitIsTheJobsFailure() {
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE)) {
            Fake client = new Fake(context.getBean(Worker.class));
            client.enqueue("Ship", "no order", List.of());
            assertTrue(assertThrows(DrainException.class, client::drain).getMessage().contains("argument 0"));
        }
    }

    @Test
    void theWorkerRunsAsLongAsTheApplication() {
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE, "millrace.worker.queues=mails:3,rest:1", "millrace.worker.concurrency=2")) {
            assertTrue(context.isActive());
            assertTrue(runsAWorker());
        }
        assertFalse(runsAWorker());
    }

    @Test
    void anApplicationWithoutHandlersRunsNoWorker() {
        try (ConfigurableApplicationContext context = run(Enqueuing.class, NOWHERE)) {
            assertFalse(runsAWorker());
            assertEquals(1, context.getBeansOfType(Client.class).size());
        }
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE, "millrace.worker.enabled=false")) {
            assertFalse(runsAWorker());
            Fake client = new Fake(context.getBean(Worker.class));
            client.enqueue("Ship", new Order(7, "tea"), List.of());
            assertEquals(1, client.drain(), "its handlers are known, for tests");
        }
    }

    @Test
    void theHealthOfAWorkerWithoutABrokerIsDown() {
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE)) {
            IndicatedHealthDescriptor health = health(context);
            assertEquals(Status.DOWN, health.getStatus());
            assertEquals(Map.of("identity", context.getBean(Worker.class).identity(), "worker", "not connected"), health.getDetails());
        }
        try (ConfigurableApplicationContext context = run(Enqueuing.class, NOWHERE)) {
            assertEquals(Status.UP, health(context).getStatus(), "it has no worker");
        }
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE, "management.health.millrace.enabled=false")) {
            assertNull(health(context));
        }
    }

    private static IndicatedHealthDescriptor health(ConfigurableApplicationContext context) {
        return (IndicatedHealthDescriptor) context.getBean(HealthEndpoint.class).healthForPath("millrace");
    }

    @Test
    void anApplicationWithoutActuatorHasNoHealth() {
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Alone.class).web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF).resourceLoader(new DefaultResourceLoader(new WithoutHealth())).properties(NOWHERE).run()) {
            assertTrue(context.containsBean("millraceWorker"));
            assertFalse(context.containsBean("millraceHealthIndicator"));
        }
    }

    /** Finds no class of Spring Boot's health. */
    private static final class WithoutHealth extends ClassLoader {
        WithoutHealth() {
            super(SpringTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.startsWith("org.springframework.boot.health")) {
                throw new ClassNotFoundException(name);
            }
            return super.loadClass(name, resolve);
        }
    }

    @Test
    void aHandlerThatReturnsBeforeItsWorkIsDoneIsRefused() {
        String said = assertThrows(ApplicationContextException.class, () -> run(AsynchronousApp.class, NOWHERE)).getCause().getMessage();
        assertTrue(said.contains("must return when its work is done"), said);
    }

    @Test
    void aNumberIsSeconds() {
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE, "millrace.worker.stop-timeout=25", "millrace.client.timeout=3")) {
            MillraceProperties properties = context.getBean(MillraceProperties.class);
            assertEquals(Duration.ofSeconds(25), properties.getWorker().getStopTimeout());
            assertEquals(Duration.ofSeconds(3), properties.getClient().getTimeout());
        }
    }

    @Test
    void aClientOfYourOwnReplacesTheClient() {
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Enqueuing.class).web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF).initializers(c -> c.getBeanFactory().registerSingleton("own", Client.of("amqp://own.invalid"))).run()) {
            assertEquals(List.of("own"), List.copyOf(context.getBeansOfType(Client.class).keySet()));
        }
    }

    @Test
    void clientMiddlewareIsUsed() {
        try (ConfigurableApplicationContext context = run(App.class, NOWHERE, "millrace.client.fail-fast=true")) {
            Client client = context.getBean(Client.class);
            assertThrows(UnreachableException.class, () -> client.enqueue(NewJob.of("Ship")));
            assertEquals(List.of("enqueues Ship"), seen);
        }
    }
}
