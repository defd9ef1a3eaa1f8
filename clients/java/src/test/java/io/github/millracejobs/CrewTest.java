package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CrewTest {
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();
    private final Crew crew = new Crew(4, work -> {
        Thread thread = new Thread(work);
        threads.add(thread);
        return thread;
    });

    @AfterEach
    void allThreadsEnd() throws InterruptedException {
        crew.close();
        for (Thread thread : threads) {
            thread.join();
        }
        assertTrue(threads.size() <= 4);
    }

    @Test
    void asManyRunAtOnceAsThereAre() throws Exception {
        // Each task waits for the other three, so all four threads must have been woken.
        for (int round = 0; round < 200; round++) {
            CyclicBarrier together = new CyclicBarrier(5);
            for (int i = 0; i < 4; i++) {
                crew.execute(() -> await(together));
            }
            together.await(30, TimeUnit.SECONDS);
        }
        assertEquals(4, threads.size());
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await(30, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void nothingIsLeftOver() throws Exception {
        AtomicInteger done = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(4 * 20_000);
        for (int i = 0; i < 4; i++) {
            new Thread(() -> {
                for (int j = 0; j < 20_000; j++) {
                    crew.execute(() -> {
                        done.incrementAndGet();
                        all.countDown();
                    });
                    if (j % 64 == 0) {
                        Thread.yield();
                    }
                }
            }).start();
        }
        assertTrue(all.await(50, TimeUnit.SECONDS), () -> done + " are done");
    }

    @Test
    void aThreadOutlivesItsTask() throws Exception {
        // Otherwise it would be printed.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> { });
        CountDownLatch after = new CountDownLatch(1);
        crew.execute(() -> {
            Thread.currentThread().interrupt();
            throw new StackOverflowError();
        });
        crew.execute(after::countDown);
        assertTrue(after.await(50, TimeUnit.SECONDS));
    }

    @Test
    void whatIsWaitingWhenItClosesIsStillDone() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        CountDownLatch all = new CountDownLatch(8);
        for (int i = 0; i < 8; i++) {
            crew.execute(() -> {
                try {
                    go.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                all.countDown();
            });
        }
        crew.close();
        go.countDown();
        assertTrue(all.await(50, TimeUnit.SECONDS));
    }
}
