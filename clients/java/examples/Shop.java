import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.github.millracejobs.Client;
import io.github.millracejobs.HandlerOptions;
import io.github.millracejobs.Job;
import io.github.millracejobs.MillraceException;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Worker;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A small web shop. A request enqueues the payment, which is retried while the bank is busy. A day
 * later, the customer gets an e-mail.
 *
 * <p>It needs a broker and Millrace ({@code make up}). Web server and worker are one program,
 * because the orders are in memory instead of a database. Run it with the jars of Millrace and of
 * its dependencies in the class path:
 *
 * <pre>
 * java Shop.java                                                        # on port 8000
 * curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
 * curl http://127.0.0.1:8000/orders/1                                   # its state
 * </pre>
 */
public final class Shop {
    // A real shop has a JSON library.
    private static final Pattern EMAIL = Pattern.compile("\\{\\s*\"email\"\\s*:\\s*\"([^\"\\\\]+)\"\\s*}");

    // Stands for a table of a database.
    private final Map<Integer, Order> orders = new ConcurrentHashMap<>();
    private final AtomicInteger numbers = new AtomicInteger();
    private final Client client;

    private Shop(Client client) {
        this.client = client;
    }

    private record Order(String email, boolean paid, boolean mailed) {}

    /** Thrown when the bank takes no payments at the moment. */
    private static final class BankBusy extends Exception {
        private static final long serialVersionUID = 1;

        BankBusy(int number) {
            super("order " + number + ": try again later");
        }
    }

    /** Runs the web server and the worker until SIGTERM. */
    public static void main(String[] args) throws IOException {
        String url = System.getenv().getOrDefault("MILLRACE_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/");
        int port = Integer.parseInt(System.getenv().getOrDefault("SHOP_PORT", "8000"));
        // A request waits at most 2 seconds for the broker.
        try (Client client = Client.builder(url).timeout(Duration.ofSeconds(2)).build()) {
            Shop shop = new Shop(client);
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
            server.setExecutor(Executors.newCachedThreadPool());
            server.createContext("/orders", shop::answer);
            server.start();
            Worker.builder(url)
                    .queues("payments", "mail")
                    .concurrency(5)
                    .build()
                    .handle("Charge", Integer.class, shop::charge, new HandlerOptions().timeout(Duration.ofSeconds(30)).retryIn(Shop::untilRetry))
                    .handle("AskForReview", Integer.class, shop::askForReview)
                    .runWithSignals();
            server.stop(0);
        }
        System.exit(0); // ends the web server's threads
    }

    /** Returns a short wait while the bank is busy, or null for the default backoff. */
    private static Duration untilRetry(long count, Throwable error, Job job) {
        return error instanceof BankBusy ? Duration.ofSeconds(Math.min(1L << Math.min(count, 10), 600)) : null;
    }

    /** Pays an order. A job may run twice, so it first checks whether the order is paid. */
    private void charge(int number, Job job) throws BankBusy {
        Order order = orders.get(number);
        if (order == null || order.paid()) {
            return;
        }
        askBank(number, job.attempt());
        client.enqueueIn(Duration.ofDays(1), NewJob.of("AskForReview", number).queue("mail").retry(5));
        orders.computeIfPresent(number, (n, o) -> new Order(o.email(), true, o.mailed()));
        System.out.printf("order %d is paid%n", number);
    }

    /**
     * Stands for a bank that is busy at first. A real bank gets the order's number, so that it
     * takes each payment once.
     */
    private static void askBank(int number, long attempt) throws BankBusy {
        if (attempt == 1) {
            throw new BankBusy(number);
        }
    }

    /**
     * Sends the e-mail that asks for a review. It marks the order first, because no e-mail is
     * better than two.
     */
    private void askForReview(int number, Job job) {
        Order before = orders.get(number);
        if (before == null || before.mailed()) {
            return;
        }
        if (orders.replace(number, before, new Order(before.email(), before.paid(), true))) {
            System.out.printf("e-mail to %s about order %d%n", before.email(), number);
        }
    }

    private void answer(HttpExchange exchange) throws IOException {
        if (exchange.getRequestMethod().equals("POST")) {
            order(exchange);
        } else {
            show(exchange);
        }
    }

    /** Takes an order. */
    private void order(HttpExchange exchange) throws IOException {
        Matcher body = EMAIL.matcher(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8).strip());
        if (!body.matches()) {
            send(exchange, 400, "{\"error\": \"the body must be JSON with an email\"}");
            return;
        }
        int number = numbers.incrementAndGet();
        orders.put(number, new Order(body.group(1), false, false));
        try {
            // After the order is stored, so that the worker finds it.
            client.enqueue(NewJob.of("Charge", number).queue("payments").retry(10));
        } catch (MillraceException e) {
            // A real shop enqueues such orders later.
            System.err.printf("order %d waits for its payment: %s%n", number, e.getMessage());
            send(exchange, 503, "{\"order\": %d, \"error\": \"we cannot take payments at the moment\"}".formatted(number));
            return;
        }
        send(exchange, 202, "{\"order\": %d}".formatted(number));
    }

    /** Shows an order. */
    private void show(HttpExchange exchange) throws IOException {
        String number = exchange.getRequestURI().getPath().replace("/orders/", "");
        Order order = number.matches("\\d{1,9}") ? orders.get(Integer.valueOf(number)) : null;
        if (order == null) {
            send(exchange, 404, "{\"error\": \"there is no such order\"}");
        } else {
            send(exchange, 200, "{\"paid\": %b, \"mailed\": %b}".formatted(order.paid(), order.mailed()));
        }
    }

    private static void send(HttpExchange exchange, int status, String json) throws IOException {
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
