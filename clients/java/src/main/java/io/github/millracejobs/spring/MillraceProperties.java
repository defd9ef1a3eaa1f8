package io.github.millracejobs.spring;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.convert.DurationUnit;

/** The properties {@code millrace.*}. */
@ConfigurationProperties("millrace")
public class MillraceProperties {
    private List<String> url = new ArrayList<>();
    private final ClientProperties client = new ClientProperties();
    private final WorkerProperties worker = new WorkerProperties();

    /** Makes the defaults. */
    public MillraceProperties() {}

    /** {@return the broker, for client and worker; several URLs for a cluster} */
    public List<String> getUrl() {
        return url;
    }

    /** Sets the broker. */
    public void setUrl(List<String> urls) {
        this.url = urls;
    }

    /** {@return the properties {@code millrace.client.*}} */
    public ClientProperties getClient() {
        return client;
    }

    /** {@return the properties {@code millrace.worker.*}} */
    public WorkerProperties getWorker() {
        return worker;
    }

    /** The properties of the client. */
    public static class ClientProperties {
        @DurationUnit(ChronoUnit.SECONDS)
        private Duration timeout = Duration.ofSeconds(2);
        private boolean failFast;

        /** Makes the defaults. */
        public ClientProperties() {}

        /** {@return how long an enqueue may take; 2 seconds by default} */
        public Duration getTimeout() {
            return timeout;
        }

        /** Sets how long an enqueue may take. */
        public void setTimeout(Duration most) {
            this.timeout = most;
        }

        /** {@return whether an enqueue fails as soon as each host was tried once} */
        public boolean isFailFast() {
            return failFast;
        }

        /** Sets whether an enqueue fails as soon as each host was tried once. */
        public void setFailFast(boolean fast) {
            this.failFast = fast;
        }
    }

    /** The properties of the worker. */
    public static class WorkerProperties {
        private boolean enabled = true;
        private List<String> queues = new ArrayList<>();
        private int concurrency = 5;
        private String tag = "";
        @DurationUnit(ChronoUnit.SECONDS)
        private Duration stopTimeout = Duration.ofSeconds(25);
        private boolean virtualThreads;

        /** Makes the defaults. */
        public WorkerProperties() {}

        /** {@return whether this application runs jobs} */
        public boolean isEnabled() {
            return enabled;
        }

        /** Sets whether this application runs jobs. */
        public void setEnabled(boolean runs) {
            this.enabled = runs;
        }

        /** {@return the queues in strict order, or with weights such as {@code mails:3}; those of the lanes by default} */
        public List<String> getQueues() {
            return queues;
        }

        /** Sets the queues. */
        public void setQueues(List<String> names) {
            this.queues = names;
        }

        /** {@return how many jobs run concurrently} */
        public int getConcurrency() {
            return concurrency;
        }

        /** Sets how many jobs run concurrently. */
        public void setConcurrency(int jobs) {
            this.concurrency = jobs;
        }

        /** {@return a part of the worker's identity} */
        public String getTag() {
            return tag;
        }

        /** Sets a part of the worker's identity. */
        public void setTag(String name) {
            this.tag = name;
        }

        /** {@return how long jobs may continue after a stop} */
        public Duration getStopTimeout() {
            return stopTimeout;
        }

        /** Sets how long jobs may continue after a stop. */
        public void setStopTimeout(Duration time) {
            this.stopTimeout = time;
        }

        /** {@return whether each job runs in a virtual thread, from Java 21 on} */
        public boolean isVirtualThreads() {
            return virtualThreads;
        }

        /** Sets whether each job runs in a virtual thread. */
        public void setVirtualThreads(boolean virtual) {
            this.virtualThreads = virtual;
        }
    }
}
