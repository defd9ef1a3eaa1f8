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
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Gives a Spring Boot application a client, and a worker that runs its {@link JobHandler}s. Beans of
 * the types {@link ClientMiddleware}, {@link Middleware} and {@link MillraceCustomizer} are used.
 */
@AutoConfiguration
@EnableConfigurationProperties(MillraceProperties.class)
public class MillraceAutoConfiguration {
    /** Spring makes it. */
    public MillraceAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    Client millraceClient(
            MillraceProperties properties, ObjectProvider<MillraceCustomizer> customizers, ObjectProvider<ClientMiddleware> middleware) {
        Client.Builder builder = Client.builder(properties.getUrl().toArray(String[]::new))
                .timeout(properties.getClient().getTimeout())
                .failFast(properties.getClient().isFailFast());
        middleware.orderedStream().forEach(builder::use);
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return builder.build();
    }

    /** The worker, unless {@code millrace.worker.enabled} is false. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnProperty(name = "millrace.worker.enabled", matchIfMissing = true)
    static class WorkerConfiguration {
        @Bean
        @ConditionalOnMissingBean
        Worker millraceWorker(MillraceProperties properties, ObjectProvider<MillraceCustomizer> customizers) {
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
                ConfigurableApplicationContext application, Worker worker, ObjectProvider<MillraceCustomizer> customizers,
                ObjectProvider<Middleware> middleware) {
            return new WorkerLifecycle(application, worker, customizers, middleware);
        }

        private static void serve(WorkerBuilder builder, List<String> queues) {
            Map<String, Integer> weights = new LinkedHashMap<>();
            for (String queue : queues) {
                int colon = queue.lastIndexOf(':');
                if (colon < 0) {
                    builder.queues(queues.toArray(String[]::new));
                    return;
                }
                weights.put(queue.substring(0, colon), Integer.valueOf(queue.substring(colon + 1)));
            }
            builder.queues(weights);
        }

        /** Calls a method that the oldest supported Java does not have. */
        private static Executor virtualThreads() {
            try {
                return (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("millrace.worker.virtual-threads needs Java 21", e);
            }
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
}
