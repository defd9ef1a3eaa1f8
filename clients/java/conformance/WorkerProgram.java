import io.github.millracejobs.Discard;
import io.github.millracejobs.HandBack;
import io.github.millracejobs.Handler;
import io.github.millracejobs.HandlerOptions;
import io.github.millracejobs.Job;
import io.github.millracejobs.Kill;
import io.github.millracejobs.Lane;
import io.github.millracejobs.Middleware;
import io.github.millracejobs.Worker;
import io.github.millracejobs.WorkerBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Tested by clients/conformance, whose README says what this program must do. */
final class WorkerProgram {
    private static FileChannel effects;

    private WorkerProgram() {}

    public static void main(String[] args) throws IOException {
        effects = FileChannel.open(Path.of(System.getenv("MILLRACE_EFFECTS")), StandardOpenOption.APPEND);
        Worker worker = configured(Settings.read(System.getenv("MILLRACE_WORKER")));
        worker.use(around("outer")).use(around("inner"));
        quick(worker);
        slow(worker);
        hooks(worker);
        worker.runWithSignals();
    }

    private static Worker configured(Map<String, Object> settings) {
        WorkerBuilder builder = Worker.builder(System.getenv("MILLRACE_AMQP_URL"));
        if (settings.get("queues") instanceof List<?> names) {
            builder.queues(names.toArray(String[]::new));
        } else if (settings.get("queues") instanceof Map<?, ?> weights) {
            builder.queues(weights(weights));
        }
        if (settings.get("lanes") instanceof List<?> lanes) {
            lanes.forEach(lane -> builder.lane(lane((Map<?, ?>) lane)));
        }
        if (settings.get("concurrency") instanceof Number threads) {
            builder.concurrency(threads.intValue());
        }
        if (settings.get("tag") instanceof String tag) {
            builder.tag(tag);
        }
        if (settings.get("stop_timeout") instanceof Number seconds) {
            builder.stopTimeout(Duration.ofMillis(Math.round(seconds.doubleValue() * 1000)));
        }
        if (settings.get("max_deaths") instanceof Number deaths) {
            builder.maxDeaths(deaths.intValue());
        }
        return builder.build();
    }

    private static Lane lane(Map<?, ?> lane) {
        String name = (String) lane.get("name");
        Lane made = lane.get("queues") instanceof List<?> names ? Lane.strict(name, names.toArray(String[]::new))
                : Lane.weighted(name, weights((Map<?, ?>) lane.get("queues")));
        return made.concurrency(((Number) lane.get("concurrency")).intValue());
    }

    private static Map<String, Integer> weights(Map<?, ?> raw) {
        Map<String, Integer> weights = new LinkedHashMap<>();
        raw.forEach((queue, weight) -> weights.put((String) queue, ((Number) weight).intValue()));
        return weights;
    }

    private static void quick(Worker worker) {
        worker.handle("Append", then(job -> { }));
        worker.handle("Wrapped", then(job -> { }));
        worker.handle("Fail", then(WorkerProgram::fail));
        worker.handle("FailSoon", then(job -> {
            if (job.attempt() <= job.arg(1, Long.class)) {
                fail(job);
            }
        }), new HandlerOptions().retryIn((count, error, job) -> Duration.ofMillis(200)));
        worker.handle("Fatal", then(job -> overflow(0)));
        worker.handle("Discard", then(job -> {
            throw new Discard("on purpose");
        }));
        worker.handle("Kill", then(job -> {
            throw new Kill("killed on purpose: " + job.arg(0));
        }));
        worker.handle("Args", job -> {
            List<?> all = (List<?>) job.args();
            add("args", Settings.write(all.subList(1, all.size())), job);
        });
        worker.handle("Trace", job -> add("trace", String.valueOf(job.headers().getOrDefault("traceparent", "none")), job));
        worker.handle("Noop", job -> { });
    }

    /** Returns middleware that records its position. */
    private static Middleware around(String name) {
        return (job, next) -> {
            if (!job.className().equals("Wrapped")) {
                next.run(job);
                return;
            }
            add(name, job);
            if (name.equals("inner") && job.arg(0).equals("fail")) {
                fail(job);
            }
            next.run(job);
            add(name + "-end", job);
        };
    }

    private static void slow(Worker worker) {
        worker.handle("Sleep", job -> {
            add("began", job);
            Thread.sleep(millis(job));
            add("ran", job);
        });
        worker.handle("Wait", job -> {
            add("began", job);
            if (job.await(Duration.ofMillis(millis(job)))) {
                add("stopped", job);
                throw new HandBack();
            }
            add("ran", job);
        });
        worker.handle("Die", job -> {
            add("began", job);
            new ProcessBuilder("kill", "-KILL", Long.toString(ProcessHandle.current().pid())).start().waitFor();
        });
    }

    private static void hooks(Worker worker) {
        worker.onStartup(() -> write("startup", "-", "", 0));
        worker.onQuiet(() -> write("quiet", "-", "", 0));
        worker.onShutdown(() -> write("shutdown", "-", "", 0));
        worker.onDeath((job, error) -> add("death", "-", job));
    }

    private static Handler then(Handler handler) {
        return job -> {
            add("ran", job);
            handler.run(job);
        };
    }

    private static void fail(Job job) {
        throw new IllegalStateException("failed on purpose: " + job.arg(0));
    }

    private static int overflow(int depth) {
        return overflow(depth + 1) + 1;
    }

    private static long millis(Job job) {
        return Math.round(job.arg(1, Double.class) * 1000);
    }

    private static void add(String what, Job job) {
        add(what, job.arg(0, String.class), job);
    }

    private static void add(String what, String text, Job job) {
        write(what, text, job.jid(), job.attempt());
    }

    private static synchronized void write(String what, String text, String jid, long attempt) {
        Instant now = Instant.now();
        String line = String.format(Locale.ROOT, "%s\t%s\t%s\t%d\t%d.%09d\n", what, text, jid, attempt, now.getEpochSecond(), now.getNano());
        try {
            effects.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
