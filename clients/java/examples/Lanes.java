import io.github.millracejobs.Discard;
import io.github.millracejobs.HandBack;
import io.github.millracejobs.HandlerOptions;
import io.github.millracejobs.Job;
import io.github.millracejobs.Lane;
import io.github.millracejobs.RetryIn;
import io.github.millracejobs.Worker;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;

/** Shows lanes, middleware, hooks, a handler that stops early, and several ways to fail. */
public final class Lanes {
    private Lanes() {}

    /** The argument of a job of class Charge. */
    private record Order(String customer, BigDecimal amount) {}

    /** Runs until a signal stops it. */
    public static void main(String[] args) {
        Worker.builder(System.getenv().getOrDefault("MILLRACE_AMQP_URL", "amqp://localhost"))
                .queues(Map.of("critical", 3, "default", 1))
                .concurrency(10)
                .lane(Lane.strict("slow", "reports").concurrency(2))
                .tag("example")
                .build()
                .use((job, next) -> {
                    System.out.printf("%s begins, attempt %d%n", job.className(), job.attempt());
                    next.run(job);
                })
                .handle("Report", Lanes::report, new HandlerOptions().timeout(Duration.ofMinutes(10)))
                .handle("Charge", Order.class, Lanes::charge, new HandlerOptions().retryIn((count, error, job) -> Duration.ofMinutes(count + 1)))
                .onFailure((job, error) -> System.out.printf("%s failed: %s%n", job.jid(), error))
                .onDeath((job, error) -> System.out.printf("%s was given up: %s%n", job.jid(), error))
                .runWithSignals();
    }

    /** Works for long, in steps. */
    private static void report(Job job) throws InterruptedException {
        for (int page = 0; page < 100; page++) {
            if (job.await(Duration.ofSeconds(1))) { // stands for a second's work
                throw new HandBack();
            }
            System.out.printf("page %d%n", page);
        }
    }

    /** Fails in several ways. */
    private static void charge(Order order, Job job) {
        if (order.amount().signum() <= 0) {
            throw new Discard("nothing to pay");
        }
        if (order.customer().equals("busy")) {
            throw new RetryIn(Duration.ofSeconds(5), "the bank is busy");
        }
    }
}
