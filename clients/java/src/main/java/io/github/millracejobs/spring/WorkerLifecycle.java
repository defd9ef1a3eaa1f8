package io.github.millracejobs.spring;

import io.github.millracejobs.Middleware;
import io.github.millracejobs.Worker;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;

/**
 * Runs the worker from the start of the application to its end. Without handlers, nothing runs. If
 * the broker refuses the worker, the application closes.
 */
final class WorkerLifecycle implements SmartLifecycle {
    private final ConfigurableApplicationContext application;
    private final Worker worker;
    private final ObjectProvider<MillraceCustomizer> customizers;
    private final ObjectProvider<Middleware> middleware;
    private volatile Thread thread;

    WorkerLifecycle(
            ConfigurableApplicationContext application, Worker worker, ObjectProvider<MillraceCustomizer> customizers,
            ObjectProvider<Middleware> middleware) {
        this.application = application;
        this.worker = worker;
        this.customizers = customizers;
        this.middleware = middleware;
    }

    @Override
    public void start() {
        middleware.orderedStream().forEach(worker::use);
        int methods = HandlerMethods.register(application.getBeanFactory(), worker);
        customizers.orderedStream().forEach(customizer -> customizer.customize(worker));
        if (methods == 0 && customizers.stream().findAny().isEmpty()) {
            return;
        }
        thread = new Thread(this::run, "millrace-worker");
        thread.start();
    }

    private void run() {
        try {
            worker.run();
        } catch (RuntimeException e) {
            application.close();
            throw e;
        }
    }

    /** Returns when the jobs have ended, or were handed back. */
    @Override
    public void stop() {
        worker.close();
        thread = null;
    }

    @Override
    public boolean isRunning() {
        return thread != null;
    }
}
