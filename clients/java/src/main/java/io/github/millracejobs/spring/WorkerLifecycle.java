package io.github.millracejobs.spring;

import io.github.millracejobs.Middleware;
import io.github.millracejobs.Worker;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;

/**
 * Runs the worker from the start of the application to its end, unless it has no handlers, or the
 * application does not run jobs. If the broker refuses the worker, the application closes.
 */
final class WorkerLifecycle implements SmartLifecycle {
    private static final Logger LOG = LoggerFactory.getLogger("millrace");

    private final ConfigurableApplicationContext application;
    private final Worker worker;
    private final boolean enabled;
    private final ObjectProvider<WorkerCustomizer> customizers;
    private final ObjectProvider<Middleware> middleware;
    private volatile boolean started;
    private volatile boolean stopping;
    private volatile Thread thread;

    WorkerLifecycle(
            ConfigurableApplicationContext application, Worker worker, boolean enabled, ObjectProvider<WorkerCustomizer> customizers,
            ObjectProvider<Middleware> middleware) {
        this.application = application;
        this.worker = worker;
        this.enabled = enabled;
        this.customizers = customizers;
        this.middleware = middleware;
    }

    @Override
    public void start() {
        middleware.orderedStream().forEach(worker::use);
        HandlerMethods.register(application.getBeanFactory(), worker);
        customizers.orderedStream().forEach(customizer -> customizer.customize(worker));
        if (!enabled || !worker.hasHandlers()) {
            return;
        }
        thread = new Thread(this::run, "millrace-worker");
        started = true;
        thread.start();
    }

    private void run() {
        try {
            worker.run();
            if (!stopping) {
                LOG.warn("millrace: the worker was stopped; the application runs on without it");
            }
        } catch (IllegalStateException e) {
            if (!stopping) { // else it was stopped before it began
                throw e;
            }
        } catch (RuntimeException | Error e) {
            LOG.error("millrace: the worker has ended, so the application closes", e);
            application.close();
        } finally {
            thread = null;
        }
    }

    /** Returns when the jobs have ended, or were handed back. */
    @Override
    public void stop() {
        stopping = true;
        Thread running = thread;
        worker.close();
        if (running != null && running != Thread.currentThread()) {
            try {
                running.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Returns whether the application runs a worker, or did. */
    boolean hasStarted() {
        return started;
    }

    @Override
    public boolean isRunning() {
        return thread != null;
    }

    /**
     * Returns that Spring must not pause it between tests: a worker runs once. It overrides a method
     * that Spring has from version 7 on.
     */
    public boolean isPauseable() {
        return false;
    }
}
