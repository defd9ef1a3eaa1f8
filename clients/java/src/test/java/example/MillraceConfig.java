package example;

import io.github.millracejobs.Client;
import io.github.millracejobs.Worker;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The client of a Spring application, and a worker that starts and stops with it. */
@Configuration
public class MillraceConfig {
    @Bean
    public Client millraceClient(@Value("${millrace.url}") String url) {
        return Client.builder(url).timeout(Duration.ofSeconds(2)).build();
    }

    @Bean
    public Worker millraceWorker(@Value("${millrace.url}") String url, Greeter greeter) {
        return Worker.builder(url).queues("default").build().handle("Greet", String.class, (name, job) -> greeter.greet(name));
    }

    @Bean
    public SmartLifecycle millraceLifecycle(Worker worker, ConfigurableApplicationContext application) {
        Thread thread = new Thread(() -> {
            try {
                worker.run();
            } catch (RuntimeException e) { // the broker refuses the worker
                application.close();
                throw e;
            }
        }, "millrace-worker");
        return new SmartLifecycle() {
            @Override
            public void start() {
                thread.start();
            }

            @Override
            public void stop() {
                worker.close(); // returns when its jobs have ended, or were handed back
            }

            @Override
            public boolean isRunning() {
                return thread.isAlive();
            }
        };
    }
}
