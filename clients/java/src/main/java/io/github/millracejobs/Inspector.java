package io.github.millracejobs;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Finds jobs and acts on them, over the REST API of a sidecar. It is thread-safe.
 *
 * <p>Every method may throw:
 *
 * <ul>
 * <li>{@link ApiException}: the sidecar refuses the request
 * <li>{@link NotFoundException}: there is no such job or queue
 * <li>{@link UnreachableException}: no sidecar was reached
 * <li>{@link UnconfirmedException}: there was no answer. The action may have been done, and it is
 * safe to repeat it
 * </ul>
 */
public final class Inspector {
    private static final String DEFAULT_URL = "http://guest:guest@127.0.0.1:15680";
    private static final String SCHEDULED = "scheduled-jobs";
    private static final String RETRIES = "retries";
    private static final String DEAD = "dead-jobs";
    private static final List<String> SETS = List.of(SCHEDULED, RETRIES, DEAD, "gated-jobs");
    private static final String JOBS = "jobs";
    private static final String QUEUES = "job-queues";
    private static final int PAGE = 500; // queues or jobs in one answer
    private static final int FIRST_REFUSAL = 300;
    private static final int NOT_FOUND = 404;
    private static final int UNKNOWN_OUTCOME = 504;

    private final URI url;
    private final String authorization;
    private final HttpClient client;
    private final Duration timeout;

    /**
     * A job that waits outside of its queue.
     *
     * @param jid its id
     * @param set {@code scheduled-jobs}, {@code retries}, {@code dead-jobs} or {@code gated-jobs}
     * @param at when the job is due, or when it died
     * @param className its class
     * @param queue its queue
     * @param attempt how many attempts have failed
     * @param record the published record, with the job as its member {@code job}
     */
    public record Entry(String jid, String set, Instant at, String className, String queue, int attempt, Map<String, Object> record) {}

    /**
     * An attempt that a worker reported.
     *
     * @param at when it ended
     * @param className the job's class
     * @param queue the job's queue
     * @param status {@code success}, {@code failed}, {@code dead}, {@code discarded} or {@code
     *     expired}
     * @param attempt from 1; 0 if the worker did not report it
     * @param errorClass the class of its error, or null
     */
    public record Run(Instant at, String className, String queue, String status, int attempt, String errorClass) {}

    /**
     * A job. Without an entry it is in its queue, runs, or has ended.
     *
     * @param jid its id
     * @param entries where it waits
     * @param runs how its attempts ended, the newest first
     */
    public record Found(String jid, List<Entry> entries, List<Run> runs) {}

    /**
     * How full a queue is.
     *
     * @param name its name
     * @param state {@code running}, {@code idle}, {@code no_consumers}, {@code paused}, or a state
     *     of the broker
     * @param ready how many jobs wait in it
     * @param running how many jobs workers have, or null if the broker does not report it
     * @param scheduled how many jobs of this queue are scheduled
     * @param retries how many jobs of this queue wait for a retry
     * @param dead how many jobs of this queue are dead
     */
    public record QueueSize(String name, String state, long ready, Long running, long scheduled, long retries, long dead) {}

    private Inspector(URI url, String authorization, HttpClient client, Duration timeout) {
        this.url = url;
        this.authorization = authorization;
        this.client = client;
        this.timeout = timeout;
    }

    /** {@return an inspector for the sidecar of this machine, as {@code guest}} */
    public static Inspector of() {
        return of(DEFAULT_URL);
    }

    /**
     * {@return an inspector for a sidecar: {@code http://user:password@host:port}, or {@code
     * https://}} The user is one of the broker's.
     */
    public static Inspector of(String url) {
        return of(url, null, HttpClient.newHttpClient(), Duration.ofSeconds(10));
    }

    /**
     * {@return an inspector for a sidecar with a client of yours, for certificates and proxies}
     *
     * @param url {@code http://user:password@host:port}, or {@code https://}
     * @param token replaces user and password, if the sidecar has tokens; or null
     * @param client sends the requests
     * @param timeout how long a call may take
     */
    public static Inspector of(String url, String token, HttpClient client, Duration timeout) {
        URI uri = uri(url);
        String user = uri.getRawUserInfo() == null ? "" : uri.getRawUserInfo();
        String decoded = URLDecoder.decode((user.contains(":") ? user : user + ":").replace("+", "%2B"), StandardCharsets.UTF_8);
        String basic = "Basic " + Base64.getEncoder().encodeToString(decoded.getBytes(StandardCharsets.UTF_8));
        return new Inspector(uri, token == null ? basic : "Bearer " + token, client, timeout);
    }

    private static URI uri(String url) {
        URI uri = null;
        try {
            uri = URI.create(url);
        } catch (IllegalArgumentException e) {
            // Its message contains the URL with the password.
        }
        if (uri == null || uri.getHost() == null || !("http".equals(uri.getScheme()) || "https".equals(uri.getScheme()))) {
            throw new IllegalArgumentException("the sidecar's URL must be http://user:password@host:port, or https://");
        }
        return uri;
    }

    /** {@return a job} Throws NotFoundException if it is not known. */
    public Found find(String jid) {
        Map<?, ?> answer = (Map<?, ?>) call("GET", null, JOBS, jid);
        List<Run> runs = new ArrayList<>();
        if (answer.get("runs") instanceof List<?> all) {
            all.forEach(one -> runs.add(run((Map<?, ?>) one)));
        }
        return new Found(jid, ((List<?>) answer.get("entries")).stream().map(item -> entry((Map<?, ?>) item, jid, text(about((Map<?, ?>) item), "set"))).toList(), runs);
    }

    /**
     * {@return the jobs with a tag that wait outside of their queues} They are scheduled, wait for a
     * retry, are dead, or wait until their queue exists. The stream asks the sidecar for some at a
     * time. A job that moves meanwhile may come twice. Records over 64 KiB are not searched.
     */
    public Stream<Entry> findByTag(String tag) {
        return SETS.stream().flatMap(set -> pages(set + "?page=1&page_size=" + PAGE + "&tag=" + encode(tag))
                .flatMap(page -> ((List<?>) page.get("items")).stream())
                .map(item -> entry((Map<?, ?>) item, jid((Map<?, ?>) item), set)));
    }

    private Stream<Map<?, ?>> pages(String path) {
        return Stream.iterate(page(path), Objects::nonNull, page -> page.get("next") instanceof String next ? page(path + "&next=" + encode(next)) : null);
    }

    private Map<?, ?> page(String path) {
        return (Map<?, ?>) send("GET", null, path);
    }

    /**
     * Deletes a job that is scheduled, waits for a retry, or is dead. Throws NotFoundException if
     * it is none of these.
     */
    public void delete(String jid) {
        call("DELETE", null, JOBS, jid);
    }

    /**
     * Asks the worker that runs a job to cancel it. {@link Job#isCancelled} of that job then
     * returns true. Throws NotFoundException if no worker reports that it runs the job.
     */
    public void cancel(String jid) {
        call("POST", null, JOBS, jid, "cancel");
    }

    /**
     * Puts a job that waits for a retry, or is dead, into its queue now. Throws NotFoundException
     * if it is neither.
     */
    public void retry(String jid) {
        call("POST", null, setOf(jid, RETRIES, DEAD), jid, "retry");
    }

    /** Sets when a scheduled job, or a retry, is due. Throws NotFoundException if it is neither. */
    public void reschedule(String jid, Instant at) {
        call("PATCH", Map.of("at", at.toEpochMilli() / 1e3), setOf(jid, SCHEDULED, RETRIES), jid);
    }

    /** {@return how full a queue is} Throws NotFoundException if there is no such queue. */
    public QueueSize queue(String name) {
        return size((Map<?, ?>) call("GET", null, QUEUES, name));
    }

    /** {@return how full all queues are, by name} */
    public List<QueueSize> queues() {
        List<QueueSize> all = new ArrayList<>();
        while (true) {
            List<?> page = (List<?>) send("GET", null, QUEUES + "?limit=" + PAGE + "&offset=" + all.size());
            page.forEach(one -> all.add(size((Map<?, ?>) one)));
            if (page.size() < PAGE) {
                return all;
            }
        }
    }

    private String setOf(String jid, String... sets) {
        return find(jid).entries().stream().map(Entry::set).filter(List.of(sets)::contains).findFirst()
                .orElseThrow(() -> new NotFoundException(NOT_FOUND, "not_found", "job " + jid + " is not in " + String.join(" or ", sets)));
    }

    private Object call(String method, Object body, String... path) {
        return send(method, body, Stream.of(path).map(Inspector::encode).collect(Collectors.joining("/")));
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private Object send(String method, Object body, String path) {
        String base = url.getScheme() + "://" + url.getRawAuthority().replaceFirst(".*@", "") + url.getRawPath().replaceFirst("/$", "");
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + "/api/" + path)).timeout(timeout).header("Authorization", authorization);
        if (body == null) {
            request.method(method, HttpRequest.BodyPublishers.noBody());
        } else {
            request.method(method, HttpRequest.BodyPublishers.ofByteArray(Json.write(body))).header("Content-Type", "application/json");
        }
        HttpResponse<byte[]> answer = exchange(request.build());
        if (answer.statusCode() >= FIRST_REFUSAL) {
            throw refusal(answer.statusCode(), answer.body());
        }
        try {
            return answer.body().length == 0 ? null : Json.read(answer.body());
        } catch (IOException e) {
            throw new ApiException(answer.statusCode(), "unknown", "this is no answer of a sidecar: " + e.getMessage());
        }
    }

    private HttpResponse<byte[]> exchange(HttpRequest request) {
        String where = url.getHost() + ":" + url.getPort();
        try {
            return client.send(request, HttpResponse.BodyHandlers.ofByteArray());
        } catch (ConnectException | HttpConnectTimeoutException e) {
            throw new UnreachableException("no sidecar at " + where + ": " + e, e);
        } catch (IOException e) {
            throw new UnconfirmedException(null, "no answer from the sidecar at " + where + ": " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UnconfirmedException(null, "interrupted while the sidecar at " + where + " was asked", e);
        }
    }

    private static MillraceException refusal(int status, byte[] body) {
        Map<String, Object> said = Json.object(body);
        String code = said != null && said.get("error") instanceof String text ? text : "unknown";
        String reason = said != null && said.get("reason") instanceof String text ? text : "this is no answer of a sidecar";
        return switch (status) {
            case UNKNOWN_OUTCOME -> new UnconfirmedException(null, reason, null);
            case NOT_FOUND -> new NotFoundException(status, code, reason);
            default -> new ApiException(status, code, reason);
        };
    }

    private static String jid(Map<?, ?> item) {
        return item.get("jid") == null && item.get("job") instanceof Map<?, ?> job ? text(job, "jid") : text(item, "jid");
    }

    private static Map<?, ?> about(Map<?, ?> item) {
        return (Map<?, ?>) item.get("millrace");
    }

    private static Entry entry(Map<?, ?> item, String jid, String set) {
        Map<?, ?> about = about(item);
        Map<String, Object> record = new LinkedHashMap<>();
        item.forEach((name, value) -> record.put((String) name, value));
        record.remove("millrace");
        return new Entry(jid, set, time(about), text(about, "class"), text(about, "queue"), (int) number(about, "attempt"), record);
    }

    private static Run run(Map<?, ?> one) {
        return new Run(time(one), text(one, "class"), text(one, "queue"), text(one, "status"), (int) number(one, "attempt"), text(one, "error_class"));
    }

    private static QueueSize size(Map<?, ?> one) {
        Long running = one.get("unacked") == null ? null : number(one, "unacked");
        return new QueueSize(text(one, "name"), text(one, "state"), number(one, "ready"), running, number(one, "scheduled"), number(one, "retries"),
                number(one, "dead"));
    }

    private static String text(Map<?, ?> from, String name) {
        return (String) from.get(name);
    }

    private static long number(Map<?, ?> from, String name) {
        return ((Number) from.get(name)).longValue();
    }

    private static Instant time(Map<?, ?> from) {
        return Instant.ofEpochMilli(Math.round(((Number) from.get("at")).doubleValue() * 1e3));
    }
}
