package io.github.millracejobs.spring;

import io.github.millracejobs.Worker;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/** The health {@code millrace} of Actuator: whether the worker runs and is connected. */
final class WorkerHealth extends AbstractHealthIndicator {
    private final Worker worker;
    private final WorkerLifecycle lifecycle;

    WorkerHealth(Worker worker, WorkerLifecycle lifecycle) {
        this.worker = worker;
        this.lifecycle = lifecycle;
    }

    @Override
    protected void doHealthCheck(Health.Builder health) {
        if (!lifecycle.hasStarted()) {
            health.up().withDetail("worker", "none");
            return;
        }
        health.withDetail("identity", worker.identity());
        if (!lifecycle.isRunning()) {
            health.outOfService().withDetail("worker", "stopped");
        } else if (worker.isConnected()) {
            health.up().withDetail("worker", "connected");
        } else {
            health.down().withDetail("worker", "not connected");
        }
    }
}
