import io.github.millracejobs.BulkException;
import io.github.millracejobs.Client;
import io.github.millracejobs.ClientMiddleware;
import io.github.millracejobs.Decision;
import io.github.millracejobs.Defined;
import io.github.millracejobs.GovernedQueue;
import io.github.millracejobs.Limit;
import io.github.millracejobs.MillraceException;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.PeriodicJob;
import io.github.millracejobs.Unique;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/** Tested by clients/conformance, whose README says what this program must do. */
final class ProducerProgram {
    private static final Duration USUAL = Duration.ofSeconds(30);

    private ProducerProgram() {}

    public static void main(String[] args) throws IOException {
        Path results = Path.of(System.getenv("MILLRACE_RESULTS"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Client client = client()) {
            int number = 1;
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                Map<String, Object> result = new LinkedHashMap<>();
                result.put("line", number++);
                try {
                    Map<String, Object> command = Settings.read(line);
                    if (command.get("op").equals("define")) {
                        result.putAll(define(client, command));
                    } else if (command.get("op").equals("enqueue_unique")) {
                        Decision stays = client.enqueueUnique(job(command), within(command));
                        result.put("jids", List.of(stays.jid()));
                        result.put("duplicate", stays.duplicate());
                    } else {
                        result.put("jids", carryOut(client, command));
                    }
                } catch (MillraceException e) {
                    result.put("error", e.getClass().getSimpleName().replace("Exception", ""));
                    result.put("message", e.getMessage());
                }
                Files.writeString(results, Settings.write(result) + "\n", StandardOpenOption.APPEND);
            }
        }
    }

    private static Client client() {
        return Client.builder(System.getenv("MILLRACE_AMQP_URL")).use(marks("outer")).use(marks("inner")).build();
    }

    /** Returns middleware that records its position. */
    private static ClientMiddleware marks(String name) {
        return (job, next) -> {
            if (job.className().equals("Swallowed")) {
                return null;
            }
            if (job.className().equals("Wrapped")) {
                List<Object> args = new ArrayList<>(job.args());
                args.add(name);
                job.args(args);
            }
            return next.enqueue(job);
        };
    }

    private static List<String> carryOut(Client client, Map<String, Object> command) {
        if (command.get("op").equals("bulk")) {
            return bulk(client, command);
        }
        return Collections.singletonList(client.enqueue(job(command), within(command)));
    }

    private static NewJob job(Map<String, Object> command) {
        NewJob job = NewJob.withArgs((String) command.get("class"), (List<?>) command.get("args"));
        if (command.get("options") instanceof Map<?, ?> options) {
            options.forEach((name, value) -> option(job, (String) name, value));
        }
        if (command.get("at") instanceof Number at) {
            job.at(time(at));
        } else if (command.get("in") instanceof Number in) {
            job.in(duration(in));
        }
        return job;
    }

    private static Duration within(Map<String, Object> command) {
        return command.get("timeout") instanceof Number seconds ? duration(seconds) : USUAL;
    }

    private static Unique unique(Object value) {
        if (!(value instanceof Map<?, ?> members)) {
            return Boolean.TRUE.equals(value) ? Unique.of() : null;
        }
        Unique unique = members.get("key") instanceof String key ? Unique.key(key)
                : members.get("by") instanceof List<?> ? Unique.by(texts(members.get("by"))) : Unique.of();
        members.forEach((name, member) -> Objects.requireNonNull(switch ((String) name) {
            case "key", "by" -> unique;
            case "while" -> member.equals("waiting") ? unique.whileWaiting() : unique;
            case "on" -> member.equals("replace") ? unique.replace() : unique;
            case "for" -> unique.forAtLeast(duration((Number) member));
            case "wait" -> unique.putOff(duration((Number) member));
            case "max" -> unique.putOffAtMost(duration((Number) member));
            default -> throw new IllegalArgumentException("no option is called " + name);
        }));
        return unique;
    }

    private static Map<String, Object> define(Client client, Map<String, Object> command) {
        List<PeriodicJob> jobs = command.get("jobs") instanceof List<?> many ? periodic(many) : null;
        List<Limit> limits = command.get("limits") instanceof List<?> many ? many.stream().map(of -> limit((Map<?, ?>) of)).toList() : null;
        List<GovernedQueue> queues = command.get("queues") instanceof List<?> many ? many.stream().map(of -> queue((Map<?, ?>) of)).toList() : null;
        Defined did = client.define((String) command.get("source"), jobs, limits, queues, duration((Number) command.get("timeout")));
        return Map.of("made", did.made(), "changed", did.changed(), "forgotten", did.forgotten(), "unchanged", did.unchanged());
    }

    private static List<PeriodicJob> periodic(List<?> many) {
        List<PeriodicJob> jobs = new ArrayList<>();
        for (Object each : many) {
            Map<?, ?> of = (Map<?, ?>) each;
            NewJob job = NewJob.withArgs((String) of.get("class"), (List<?>) of.get("args"));
            PeriodicJob periodic = PeriodicJob.of((String) of.get("name"), of.get("queue") instanceof String queue ? job.queue(queue) : job);
            of.forEach((name, value) -> schedule(periodic, (String) name, value));
            jobs.add(periodic);
        }
        return jobs;
    }

    private static GovernedQueue queue(Map<?, ?> of) {
        GovernedQueue queue = GovernedQueue.of((String) of.get("name"));
        of.forEach((name, value) -> Objects.requireNonNull(switch ((String) name) {
            case "name" -> queue;
            case "key" -> queue.key((String) value);
            case "max_waiting" -> queue.maxWaiting(((Number) value).longValue());
            case "weights" -> {
                ((Map<?, ?>) value).forEach((key, turns) -> queue.weight((String) key, ((Number) turns).longValue()));
                yield queue;
            }
            case "ahead" -> queue.ahead(((Number) value).longValue());
            case "paused" -> (Boolean) value ? queue.paused() : queue;
            default -> throw new IllegalArgumentException("no option is called " + name);
        }));
        return queue;
    }

    private static Limit limit(Map<?, ?> of) {
        Limit limit = Limit.of((String) of.get("name"));
        of.forEach((name, value) -> bound(limit, (String) name, value));
        return limit;
    }

    private static void bound(Limit limit, String name, Object value) {
        switch (name) {
            case "name" -> { }
            case "queues" -> limit.queues(texts(value));
            case "classes" -> limit.classes(texts(value));
            case "per" -> limit.per(((List<?>) value).stream().map(per -> Limit.Per.valueOf(((String) per).toUpperCase(Locale.ROOT))).toArray(Limit.Per[]::new));
            case "concurrency" -> limit.concurrency(((Number) value).longValue());
            case "rate" -> limit.rate(rate((Map<?, ?>) value));
            case "overrides" -> ((Map<?, ?>) value).forEach((key, of) -> limit.concurrency((String) key, ((Number) ((Map<?, ?>) of).get("concurrency")).longValue()));
            case "paused" -> Objects.requireNonNull((Boolean) value ? limit.paused() : limit);
            default -> throw new IllegalArgumentException("no option is called " + name);
        }
    }

    private static Limit.Rate rate(Map<?, ?> of) {
        return new Limit.Rate(((Number) of.get("jobs")).longValue(), duration((Number) of.get("seconds")), ((Number) of.get("burst")).longValue());
    }

    private static String[] texts(Object list) {
        return ((List<?>) list).toArray(String[]::new);
    }

    private static void schedule(PeriodicJob job, String name, Object value) {
        switch (name) {
            case "name", "class", "args", "queue" -> { }
            case "cron" -> job.cron((String) value);
            case "every" -> job.every(duration((Number) value));
            case "tz" -> job.zone(ZoneId.of((String) value));
            case "catch_up" -> job.catchUp(PeriodicJob.CatchUp.valueOf(((String) value).toUpperCase(Locale.ROOT)));
            case "overlap" -> job.skipOverlaps();
            case "except" -> job.except(texts(value));
            case "paused" -> job.paused();
            default -> throw new IllegalArgumentException("no option is called " + name);
        }
    }

    private static void option(NewJob job, String name, Object value) {
        switch (name) {
            case "queue" -> job.queue((String) value);
            case "retry" -> {
                if (value instanceof Boolean again) {
                    job.retry(again);
                } else {
                    job.retry(((Number) value).longValue());
                }
            }
            case "priority" -> job.priority(((Number) value).intValue());
            case "tags" -> job.tags(texts(value));
            case "jid" -> job.jid((String) value);
            case "expires_at" -> job.expiresAt(time((Number) value));
            case "timeout" -> job.timeout(duration((Number) value));
            case "dead" -> job.dead((Boolean) value);
            case "backtrace" -> {
                if (value instanceof Boolean keep) {
                    job.backtrace(keep);
                } else {
                    job.backtrace(((Number) value).intValue());
                }
            }
            case "fields" -> ((Map<?, ?>) value).forEach((field, content) -> job.field((String) field, content));
            case "traceparent" -> job.traceparent((String) value);
            case "limited" -> job.limited((Boolean) value);
            case "limit_key" -> job.limitKey((String) value);
            case "unique" -> job.unique(unique(value));
            default -> throw new IllegalArgumentException("no option is called " + name);
        }
    }

    private static Instant time(Number seconds) {
        return Instant.ofEpochSecond(0, Math.round(seconds.doubleValue() * 1e6) * 1000);
    }

    private static Duration duration(Number seconds) {
        return Duration.ofMillis(Math.round(seconds.doubleValue() * 1000));
    }

    private static List<String> bulk(Client client, Map<String, Object> command) {
        int count = ((Number) command.get("count")).intValue();
        List<String> jids = new ArrayList<>();
        for (int begin = 0; begin < count; begin += 500) {
            List<NewJob> jobs = new ArrayList<>();
            for (int i = begin; i < Math.min(begin + 500, count); i++) {
                jobs.add(NewJob.of((String) command.get("class"), command.get("prefix") + Integer.toString(i)).queue((String) command.get("queue")));
            }
            try {
                jids.addAll(client.enqueueBulk(jobs));
            } catch (BulkException e) {
                System.err.println(e.getMessage());
                jids.addAll(e.jids());
            }
        }
        return jids;
    }
}
