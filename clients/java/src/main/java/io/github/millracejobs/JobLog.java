package io.github.millracejobs;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;

/**
 * Logs lines about a worker and about jobs that did not end well. An error of the logger changes
 * nothing.
 */
final class JobLog {
    private final Logger log;

    JobLog(Logger log) {
        this.log = log;
    }

    void started(Worker worker) {
        List<String> queues = new ArrayList<>();
        int concurrency = 0;
        for (Pool pool : worker.pools) {
            queues.addAll(pool.lane.queues);
            concurrency += pool.lane.concurrency;
        }
        info("worker started", "version=" + Version.OF_LIBRARY + " identity=" + quoted(worker.identity) + " queues="
                + quoted(String.join(",", queues)) + " concurrency=" + concurrency);
    }

    void stopped(Worker worker) {
        info("worker stopped", "identity=" + quoted(worker.identity));
    }

    /** Logs how an attempt ended, unless it ended well. */
    void ended(Job job, Outcome.End end) {
        try {
            log(job, end);
        } catch (Throwable e) { // for example an error whose methods throw
            warn("job failed", attempt(job), null);
        }
    }

    private void log(Job job, Outcome.End end) {
        String reason = end.reason() == null ? "" : " reason=" + quoted(end.reason());
        if (end.error() instanceof WorkerException own && own.kind() == WorkerException.Kind.EXPIRED) {
            if (end.next() == Outcome.Next.DEAD) {
                warn("job expired", attempt(job) + " next=dead", null);
            } else {
                info("job expired", attempt(job) + " next=discarded");
            }
            return;
        }
        switch (end.next()) {
            case DONE -> { }
            case HANDED_BACK -> handedBack(job);
            case RETRY -> failed("job failed", job, "retry retry_in=" + seconds(end.delay()) + "s retry_at=" + time(end.due()), end.error());
            case DEAD -> failed(end.failed() ? "job failed" : "job died", job, "dead" + reason, end.error());
            default -> {
                if (end.failed()) {
                    failed("job failed", job, "discarded" + reason, end.error());
                } else {
                    info("job discarded", attempt(job) + reason);
                }
            }
        }
    }

    void handedBack(Job job) {
        info("job handed back", attempt(job));
    }

    void handedBackUnfinished(Job job) {
        warn("job handed back, its handler did not end within the stop timeout", attempt(job), null);
    }

    /** Logs that the broker refuses the record of a job, which is published again. */
    void recordRefused(Job job, String stream, Exception refusal) {
        try {
            log.error("millrace: the broker does not take what became of a job, it is tried again  " + attempt(job) + " stream=" + stream
                    + error(refusal));
        } catch (Throwable e) {
            // There is no place to report it.
        }
    }

    /** Logs that the begin of a redelivered job could not be written. */
    void beginUnwritten(Job job, Exception why) {
        warn("a job begins that was delivered before, and that could not be written down", attempt(job) + error(why), null);
    }

    void outcomeDropped(Job job, String why) {
        info("the outcome is dropped, the broker delivers the job again", attempt(job) + " reason=" + quoted(why));
    }

    void backoffFailed(Job job, Throwable error) {
        warn("retry_in failed, the usual backoff is used", attempt(job), error);
    }

    private void failed(String event, Job job, String next, Throwable error) {
        String what = attempt(job) + " next=" + next + " error_class=" + quoted(Failure.errorClass(error)) + " error="
                + quoted(Failure.message(error));
        boolean hasStack = error.getStackTrace().length > 0 || error.getCause() != null;
        warn(event, what, hasStack ? error : null);
    }

    private void info(String event, String values) {
        try {
            log.info("millrace: " + event + "  " + values);
        } catch (Throwable e) {
            // There is no place to report it.
        }
    }

    private void warn(String event, String values, Throwable error) {
        String line = "millrace: " + event + "  " + values;
        try {
            log.warn(line, error);
        } catch (Throwable e) { // for example an error whose getMessage throws
            try {
                log.warn(line);
            } catch (Throwable again) {
                // There is no place to report it.
            }
        }
    }

    private static String attempt(Job job) {
        return "class=" + quoted(job.className()) + " jid=" + quoted(job.jid()) + " queue=" + quoted(job.queue()) + " attempt=" + job.attempt();
    }

    private static String error(Exception e) {
        return " error=" + quoted(String.valueOf(e.getMessage()));
    }

    private static String seconds(double time) {
        return BigDecimal.valueOf(time).setScale(3, RoundingMode.HALF_UP).stripTrailingZeros().toPlainString();
    }

    private static String time(double seconds) {
        return Instant.ofEpochMilli(Math.round(seconds * 1000)).toString();
    }

    /** Returns the text, or a JSON string if the text would look like more than one value. */
    private static String quoted(String text) {
        boolean plain = !text.isEmpty() && text.chars().allMatch(c -> c > ' ' && c != '"' && c != '=' && c != 0x7f && (c < 0x80 || c > 0x9f));
        return plain ? text : new String(Json.write(Wire.valid(text)), StandardCharsets.UTF_8);
    }
}
