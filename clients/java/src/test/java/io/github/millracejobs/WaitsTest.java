package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class WaitsTest {
    @Test
    void waitingLeavesNothingBehind() {
        CompletableFuture<Void> lasting = new CompletableFuture<>();
        CompletableFuture<Void> another = new CompletableFuture<>();
        for (int i = 0; i < 1000; i++) {
            assertFalse(Waits.firstOf(Duration.ofNanos(1), lasting, another));
            assertFalse(Waits.firstOf(Duration.ofNanos(1), lasting));
        }
        assertTrue(lasting.getNumberOfDependents() < 10, "dependents: " + lasting.getNumberOfDependents());
    }

    @Test
    void theFirstEndsIt() {
        CompletableFuture<Void> done = CompletableFuture.completedFuture(null);
        assertTrue(Waits.firstOf(Duration.ofMinutes(1), new CompletableFuture<>(), done));
        assertTrue(Waits.firstOf(Duration.ofMinutes(1), CompletableFuture.failedFuture(new IOException())));
        Thread.currentThread().interrupt();
        assertFalse(Waits.firstOf(Duration.ofMinutes(1), new CompletableFuture<>()));
        assertTrue(Thread.interrupted());
    }

    @Test
    void pausesGrowToABound() {
        Waits.Pauses pauses = new Waits.Pauses();
        Duration first = pauses.next();
        assertTrue(first.toMillis() >= 50 && first.toMillis() <= 100, first.toString());
        for (int i = 0; i < 20; i++) {
            pauses.next();
        }
        assertTrue(pauses.next().toMillis() >= 2500);
        assertTrue(pauses.next().toMillis() <= 5000);
    }

    @Test
    void aFailedCallbackIsReported() throws InterruptedException {
        CountDownLatch reported = new CountDownLatch(1);
        ExecutorService one = Waits.callbacks("test", reported::countDown);
        // Otherwise it would be printed.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> { });
        one.execute(() -> {
            throw new OutOfMemoryError("as if");
        });
        assertTrue(reported.await(60, TimeUnit.SECONDS));
    }

    @Test
    void signalsAreHeardAndGivenBack() throws Exception {
        CountDownLatch heard = new CountDownLatch(1);
        try (Signals signals = new Signals()) {
            signals.on("TSTP", heard::countDown);
            assertEquals(0, new ProcessBuilder("kill", "-TSTP", Long.toString(Host.PID)).start().waitFor());
            assertTrue(heard.await(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void theVersionIsThePoms() throws IOException {
        assertTrue(Files.readString(Path.of("pom.xml")).contains("<version>" + Version.OF_LIBRARY + "</version>"));
    }
}
