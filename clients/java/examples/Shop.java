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
 * A small web shop: a request enqueues the payment, which is retried while the bank is busy, and a day later the customer gets an e-mail.
 *
 * <p>It needs a broker and Millrace ({@code make up}). Web server and worker are one program, because the orders are in memory in place of
 * a database. With the jars of Millrace and of what it needs in the class path:
 *
 * <pre>
 * java Shop.java                                                        # on port 8000
 * curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
 * curl http://127.0.0.1:8000/orders/1                                   # what became of it
 * </pre>
 */
public final class Shop {
    private static final Pattern EMAIL = Pattern.compile("\\{\\s*\"email\"\\s*:\\s*\"([^\"\\\\]+)\"\\s*}"); // a real shop has a JSON library

    private final Map<Integer, Order> orders = new ConcurrentHashMap<>(); // stands in for a table of a database
    private final AtomicInteger numbers = new AtomicInteger();
    private final Client client;

    private Shop(Client client) {
        this.client = client;
    }

    private record Order(String email, boolean paid, boolean mailed) {}

    /** The bank takes no payments at the moment. */
    private static final class BankBusy extends Exception {
        private static final long serialVersionUID = 1;

        BankBusy(int number) {
            super("order " + number + ": try again later");
        }
    }

    /** Serves and works until SIGTERM. */
    public static void main(String[] args) throws IOException {
        String url = System.getenv().getOrDefault("MILLRACE_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/");
        int port = Integer.parseInt(System.getenv().getOrDefault("SHOP_PORT", "8000"));
        try (Client client = Client.builder(url).timeout(Duration.ofSeconds(2)).build()) { // a request does not wait longer for the broker
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
        System.exit(0); // the web server's threads
    }

    /** Soon again while the bank is busy; null is the usual backoff. */
    private static Duration untilRetry(long count, Throwable error, Job job) {
        return error instanceof BankBusy ? Duration.ofSeconds(Math.min(1L << Math.min(count, 10), 600)) : null;
    }

    /** Has an order paid. A job may run twice, so it looks first whether the order is paid. */
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

    /** Stands in for a bank that is busy at first. A real one gets the order's number, so that it takes each payment once. */
    private static void askBank(int number, long attempt) throws BankBusy {
        if (attempt == 1) {
            throw new BankBusy(number);
        }
    }

    /** Sends the e-mail that asks how the customer liked it. It is noted first: rather none than two. */
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
            client.enqueue(NewJob.of("Charge", number).queue("payments").retry(10)); // the order is there: the worker must find it
        } catch (MillraceException e) {
            System.err.printf("order %d waits for its payment: %s%n", number, e.getMessage()); // a real shop enqueues such orders later
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
