package io.github.millracejobs.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.millracejobs.InvalidException;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.Worker;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class HelpersTest {
    private final List<Object> seen = new ArrayList<>();
    private final Worker worker = Worker.builder("amqp://nowhere.invalid").build()
            .handle("Note", job -> seen.add(job.arg(0)))
            .handle("Break", job -> {
                throw new IOException("broken");
            });

    @Test
    void inline() {
        Inline client = new Inline(worker);
        assertEquals(32, client.enqueue(NewJob.of("Note", List.of(1, 2)).queue("low")).length());
        assertEquals(List.of(List.of(1L, 2L)), seen, "args went through JSON");
        assertThrows(IOException.class, () -> client.enqueue("Break"));
        assertThrows(RuntimeException.class, () -> client.enqueue("Nobody"));
        assertThrows(InvalidException.class, () -> client.enqueue("Note", new Object()));
    }

    @Test
    void fake() {
        Fake client = new Fake(worker);
        client.enqueue("Note", "now");
        client.enqueueAt(Instant.ofEpochSecond(12, 500_000_000), NewJob.of("Note", "later"));
        client.enqueueBulk(List.of(NewJob.of("Note", "many")));
        assertEquals(Arrays.asList(null, Instant.ofEpochSecond(12, 500_000_000), null), client.jobs().stream().map(Enqueued::at).toList());
        assertEquals("Note", client.jobs().get(0).job().className());
        assertEquals(3, client.drain());
        assertEquals(List.of("now", "later", "many"), seen);
        client.enqueueIn(Duration.ofHours(1), NewJob.of("Note", "x"));
        client.clear();
        assertEquals(0, client.drain());
    }

    @Test
    void middleware() {
        worker.use((job, next) -> {
            seen.add("before");
            next.run(job);
        });
        Fake client = new Fake(worker).use((job, next) -> job.args().size() < 2 ? next.enqueue(job.queue("changed")) : null);
        NewJob own = NewJob.of("Note", 1);
        assertNull(client.enqueue("Note", 1, 2));
        client.enqueue(own);
        assertEquals("changed", client.jobs().get(0).job().queue());
        assertEquals("default", own.queue(), "the caller's stays as it was");
        client.drain();
        assertEquals(List.of("before", 1L), seen);
    }
}
