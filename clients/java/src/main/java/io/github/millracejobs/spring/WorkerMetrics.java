package io.github.millracejobs.spring;

import io.github.millracejobs.Discard;
import io.github.millracejobs.HandBack;
import io.github.millracejobs.Handler;
import io.github.millracejobs.Job;
import io.github.millracejobs.Middleware;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import org.springframework.beans.factory.ObjectProvider;

/** The timer {@code millrace.jobs} of Micrometer, by class, queue and outcome. */
final class WorkerMetrics implements Middleware {
    private final ObjectProvider<MeterRegistry> registries;

    WorkerMetrics(ObjectProvider<MeterRegistry> registries) {
        this.registries = registries;
    }

    @Override
    public void around(Job job, Handler next) throws Exception {
        MeterRegistry registry = registries.getIfUnique();
        if (registry == null) {
            next.run(job);
            return;
        }
        Timer.Sample sample = Timer.start(registry);
        String outcome = "failure";
        try {
            next.run(job);
            outcome = "success";
        } catch (Discard e) {
            outcome = "discarded";
            throw e;
        } catch (HandBack e) {
            outcome = "handed_back";
            throw e;
        } finally {
            sample.stop(registry.timer("millrace.jobs", "class", job.className(), "queue", job.queue(), "outcome", outcome));
        }
    }
}
