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

/** The hosts of a broker, and which of them took this client last. One thread at a time connects. */
final class Hosts {
    /** How long it may take to connect and to log in, each address. */
    private static final Duration OPEN_TIMEOUT = Duration.ofSeconds(3);

    /** How long a program may take to give credentials. */
    private static final Duration ASK_TIMEOUT = Duration.ofSeconds(30);

    private final List<String> urls;
    private final Callable<Credentials> credentials; // null: those of the URL
    private final SSLContext tls; // null: the default one
    private final Duration askTimeout;
    private CompletableFuture<Credentials> asked; // the last call of the program's function, which may still run
    private String url; // of the host that took the client last
    private InetAddress address; // of that host
    private boolean lost; // that connection has been used: it is gone when the next one is wanted

    /** Reads URLs, each of which may name several hosts. IllegalArgumentException: they are wrong. */
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
     * Connects to the first host that takes us, and tries each of them, and each of their addresses, once. All get the same credentials; without
     * credentials it tries none.
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

    /** Waits for a call that still runs, rather than making another: a function that hangs costs one thread, however many attempts fail. */
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

    /** The addresses of a host, in the order in which to try them. */
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
     * {@return in which order to try hosts, or addresses} The last good one comes first, but last when its connection was just lost; the
     * others come in random order.
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

    /** Does something in a thread of its own. */
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

    /** Does something in a thread of its own, and waits for it for some time; what comes late is dropped. */
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
