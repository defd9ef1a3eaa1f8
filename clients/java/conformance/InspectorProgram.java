import io.github.millracejobs.ApiException;
import io.github.millracejobs.Inspector;
import io.github.millracejobs.NotFoundException;
import io.github.millracejobs.UnreachableException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/**
 * Finds, reschedules, retries and deletes jobs. The arguments are a sidecar's URL, the password for
 * it, a jid, and the tag of 503 jobs.
 */
public final class InspectorProgram {
    private static final Instant DUE = Instant.ofEpochSecond(4_000_000_000L);
    private static final Instant LATER = Instant.ofEpochSecond(4_100_000_000L);

    private InspectorProgram() {}

    public static void main(String[] args) throws InterruptedException {
        Inspector inspector = Inspector.of(args[0]);
        Inspector.Entry entry = inspector.find("later").entries().get(0);
        check(entry.equals(new Inspector.Entry("later", "scheduled-jobs", DUE, "SendEmail", "mails", 0, entry.record())), entry);
        check(List.of("ann@example.com").equals(((Map<?, ?>) entry.record().get("job")).get("args")), entry);
        List<Inspector.Entry> tagged = inspector.findByTag(args[3]).toList();
        Map<String, Long> sets = tagged.stream().collect(Collectors.groupingBy(Inspector.Entry::set, Collectors.counting()));
        check(sets.equals(Map.of("scheduled-jobs", 501L, "retries", 1L, "dead-jobs", 1L)), sets);
        check(tagged.stream().map(Inspector.Entry::jid).distinct().count() == 503, tagged);
        check(inspector.findByTag("x").findFirst().orElseThrow().queue().equals("tagged"), tagged);
        check(inspector.findByTag("no such tag").findAny().isEmpty(), tagged);
        for (String jid : List.of("later", "failed")) {
            inspector.reschedule(jid, LATER);
            eventually(() -> LATER.equals(due(inspector, jid)));
        }
        raises(NotFoundException.class, () -> inspector.reschedule("dead", LATER));

        inspector.retry("failed");
        inspector.retry("dead");
        eventually(() -> {
            Inspector.QueueSize mails = inspector.queue("mails");
            return mails.ready() == 2 && mails.scheduled() == 2 && mails.retries() == 0 && mails.dead() == 0;
        });
        check(inspector.queues().stream().map(Inspector.QueueSize::name).toList().equals(List.of("mails")), inspector.queues());
        raises(NotFoundException.class, () -> inspector.retry("later"));

        for (String jid : List.of("later", args[2])) {
            inspector.delete(jid);
            eventually(() -> due(inspector, jid) == null);
            raises(NotFoundException.class, () -> inspector.delete(jid));
        }
        inspector.cancel("runs");
        raises(NotFoundException.class, () -> inspector.cancel("failed"));
        raises(NotFoundException.class, () -> inspector.find("unknown's"));
        raises(NotFoundException.class, () -> inspector.queue("no/such queue"));

        ApiException refused = raises(ApiException.class, () -> Inspector.of(args[0].replace(args[1], "wrong")).delete("later"));
        check(refused.status() == 401 && "not_authorised".equals(refused.code()), refused);
        raises(UnreachableException.class, () -> Inspector.of("http://127.0.0.1:1").delete("later"));
        raises(IllegalArgumentException.class, () -> Inspector.of("127.0.0.1:15680"));
        System.out.println("inspected");
    }

    private static Instant due(Inspector inspector, String jid) {
        try {
            return inspector.find(jid).entries().stream().map(Inspector.Entry::at).findFirst().orElse(null);
        } catch (NotFoundException e) {
            return null;
        }
    }

    private static void check(boolean holds, Object what) {
        if (!holds) {
            throw new IllegalStateException(String.valueOf(what));
        }
    }

    private static void eventually(BooleanSupplier holds) throws InterruptedException {
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (!holds.getAsBoolean()) {
            check(System.nanoTime() < deadline, "too late");
            Thread.sleep(100);
        }
    }

    private static <T extends Exception> T raises(Class<T> kind, Runnable call) {
        try {
            call.run();
        } catch (RuntimeException e) {
            return kind.cast(e);
        }
        throw new IllegalStateException("no " + kind);
    }
}
