package io.github.millracejobs;

import com.rabbitmq.client.ConnectionFactory;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/**
 * The hosts of a broker. It remembers the host to which this client connected last. One thread at a
 * time connects.
 */
final class Hosts {
    /** How long it may take to connect to one address and log in. */
    private static final Duration OPEN_TIMEOUT = Duration.ofSeconds(3);

    /** How long the function for credentials may take. */
    private static final Duration ASK_TIMEOUT = Duration.ofSeconds(30);

    private final List<String> urls;
    private final Callable<Credentials> credentials; // null: those of the URL
    private final SSLContext tls; // null: the default one
    private final Duration askTimeout;
    // The last call of the program's function, which may still run.
    private CompletableFuture<Credentials> asked;
    private String url; // of the last connection
    private InetAddress address; // of the last connection
    // Whether the last attempt connected; then a new attempt means that the connection was lost.
    private boolean lost;

    /**
     * Reads URLs, each of which may have several hosts. Throws IllegalArgumentException if they are
     * invalid.
     */
    Hosts(List<String> urls, Callable<Credentials> credentials, SSLContext tls) {
        this(urls, credentials, tls, ASK_TIMEOUT);
    }

    Hosts(List<String> urls, Callable<Credentials> credentials, SSLContext tls, Duration askTimeout) {
        this.urls = Urls.split(urls);
        this.credentials = credentials;
        this.tls = tls;
        this.askTimeout = askTimeout;
        if (tls != null && !this.urls.stream().allMatch(one -> one.startsWith("amqps://"))) {
            throw new IllegalArgumentException("tls needs an amqps:// URL");
        }
    }

    /**
     * Connects to the first host that accepts. It tries each address of each host once. All get the
     * same credentials. If the program gives no credentials, it tries none.
     */
    synchronized Link open(String name, ExecutorService deliveries) throws Lost {
        Credentials user = credentials == null ? null : ask();
        List<Lost> failures = new ArrayList<>();
        for (String candidate : tryOrder(urls, url, lost)) {
            ConnectionFactory host = Link.factory(candidate, null);
            for (InetAddress at : addresses(host.getHost(), failures)) {
                try {
                    Link link = inTime(OPEN_TIMEOUT, () -> Link.open(candidate, at, name, deliveries, user, tls), late -> late.close(OPEN_TIMEOUT));
                    url = candidate;
                    address = at;
                    lost = true;
                    return link;
                } catch (Lost e) {
                    failures.add(new Lost(at.getHostAddress() + ":" + host.getPort(), e));
                }
            }
        }
        lost = false;
        throw new Lost(failures);
    }

    /**
     * Asks the program for credentials. While an earlier call runs, it waits for that one: so a
     * function that hangs costs one thread, however many attempts fail.
     */
    private Credentials ask() throws Lost {
        if (asked == null || asked.isDone()) {
            asked = begin(() -> Objects.requireNonNull(credentials.call(), "the function returned null"));
        }
        if (!Waits.firstOf(askTimeout, asked)) {
            throw Lost.noCredentials(new TimeoutException("no answer in time"));
        }
        try {
            return asked.join();
        } catch (CompletionException e) {
            throw Lost.noCredentials(e.getCause());
        }
    }

    /** Returns the addresses of a host, in the order in which to try them. */
    private List<InetAddress> addresses(String host, Collection<Lost> failures) {
        try {
            InetAddress[] all = inTime(OPEN_TIMEOUT, () -> InetAddress.getAllByName(host), late -> { });
            return tryOrder(Arrays.asList(all), address, lost);
        } catch (Lost e) {
            failures.add(new Lost(host, e));
            return List.of();
        }
    }

    /**
     * {@return the order in which to try hosts or addresses} The last good one is first, or last if
     * its connection was just lost. The others are in random order.
     */
    static <T> List<T> tryOrder(Collection<T> all, T good, boolean lost) {
        List<T> order = new ArrayList<>(all);
        boolean known = order.remove(good);
        Collections.shuffle(order);
        if (known) {
            order.add(lost ? order.size() : 0, good);
        }
        return order;
    }

    /** Runs a task in a thread of its own. */
    private static <T> CompletableFuture<T> begin(Callable<T> attempt) {
        CompletableFuture<T> done = new CompletableFuture<>();
        Waits.start("millrace opens", () -> {
            try {
                done.complete(attempt.call());
            } catch (Throwable e) {
                done.completeExceptionally(e);
            }
        });
        return done;
    }

    /**
     * Runs a task in a thread of its own, and waits for some time. A late result is passed to
     * {@code drop}.
     */
    private static <T> T inTime(Duration most, Callable<T> attempt, Consumer<T> drop) throws Lost {
        CompletableFuture<T> done = begin(attempt);
        if (!Waits.firstOf(most, done)) {
            done.thenAccept(drop);
            throw new Lost(new TimeoutException("no answer in time"));
        }
        try {
            return done.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof Lost lost ? lost : new Lost(e.getCause());
        }
    }
}
