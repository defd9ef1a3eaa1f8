package io.github.millracejobs.spring;

import io.github.millracejobs.Client;
import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Middleware;
import io.github.millracejobs.Worker;
import io.github.millracejobs.WorkerBuilder;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Gives a Spring Boot application a client, and a worker that runs its {@link JobHandler}s. Beans of
 * the types {@link ClientMiddleware}, {@link Middleware}, {@link ClientCustomizer}, {@link
 * WorkerBuilderCustomizer} and {@link WorkerCustomizer} are used.
 */
@AutoConfiguration
@EnableConfigurationProperties(MillraceProperties.class)
public class MillraceAutoConfiguration {
    private static final Pattern WEIGHTED = Pattern.compile("(.+):([1-9][0-9]{0,5})");

    /** Spring makes it. */
    public MillraceAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    Client millraceClient(
            MillraceProperties properties, ObjectProvider<ClientCustomizer> customizers, ObjectProvider<ClientMiddleware> middleware) {
        Client.Builder builder = Client.builder(properties.getUrl().toArray(String[]::new))
                .timeout(properties.getClient().getTimeout())
                .failFast(properties.getClient().isFailFast());
        middleware.orderedStream().forEach(builder::use);
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return builder.build();
    }

    @Bean
    @ConditionalOnMissingBean
    Worker millraceWorker(MillraceProperties properties, ObjectProvider<WorkerBuilderCustomizer> customizers) {
        MillraceProperties.WorkerProperties of = properties.getWorker();
        WorkerBuilder builder = Worker.builder(properties.getUrl().toArray(String[]::new))
                .concurrency(of.getConcurrency()).tag(of.getTag()).stopTimeout(of.getStopTimeout());
        serve(builder, of.getQueues());
        if (of.isVirtualThreads()) {
            builder.executor(virtualThreads());
        }
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return builder.build();
    }

    @Bean
    WorkerLifecycle millraceLifecycle(
            ConfigurableApplicationContext application, Worker worker, MillraceProperties properties,
            ObjectProvider<WorkerCustomizer> customizers, ObjectProvider<Middleware> middleware) {
        return new WorkerLifecycle(application, worker, properties.getWorker().isEnabled(), customizers, middleware);
    }

    /** Sets the queues. If one has a weight, all have: those without one have 1. */
    private static void serve(WorkerBuilder builder, List<String> queues) {
        if (queues.isEmpty()) {
            return;
        }
        Map<String, Integer> weights = new LinkedHashMap<>();
        boolean weighted = false;
        for (String queue : queues) {
            Matcher found = WEIGHTED.matcher(queue);
            boolean has = found.matches();
            weights.put(has ? found.group(1) : queue, has ? Integer.parseInt(found.group(2)) : 1);
            weighted |= has;
        }
        if (weighted) {
            builder.queues(weights);
        } else {
            builder.queues(queues.toArray(String[]::new));
        }
    }

    /** Calls a method that the oldest supported Java does not have. */
    private static Executor virtualThreads() {
        try {
            return (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("millrace.worker.virtual-threads needs Java 21", e);
        }
    }

    /** A timer for jobs, where the application has Micrometer. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    static class MetricsConfiguration {
        @Bean
        Middleware millraceMetrics(ObjectProvider<MeterRegistry> registries) {
            return new WorkerMetrics(registries);
        }
    }

    /** The worker's health, where the application has Actuator. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(ConditionalOnEnabledHealthIndicator.class)
    static class HealthConfiguration {
        @Bean
        @ConditionalOnEnabledHealthIndicator("millrace")
        HealthIndicator millraceHealthIndicator(Worker worker, WorkerLifecycle lifecycle) {
            return new WorkerHealth(worker, lifecycle);
        }
    }
}
