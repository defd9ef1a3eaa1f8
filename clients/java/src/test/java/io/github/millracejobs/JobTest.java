package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class JobTest {
    private static Job job(String body) throws Unreadable {
        return Job.read(body.getBytes(StandardCharsets.UTF_8), "q", Map.of(), "", null);
    }

    private static Map<String, Object> record(String body, Throwable error) throws Unreadable {
        return Json.object(Verdict.judge(job(body), error, 1000, false, null, null).record());
    }

    private static String traceparent(Object header) throws Unreadable {
        return Job.read("{\"class\":\"A\"}".getBytes(StandardCharsets.UTF_8), "q", Map.of("traceparent", header), "", null).traceparent();
    }

    @Test
    void aHeaderThatIsNoTraceContextIsIgnored() throws Unreadable {
        assertEquals("00-1-2-01", traceparent("00-1-2-01"));
        for (Object bad : List.of(17, "", "a\nb", "x".repeat(256))) {
            assertNull(traceparent(bad));
        }
    }

    @Test
    void numbersAreExact() throws Unreadable {
        Job job = job("{\"class\":\"A\",\"args\":[9007199254740993,12345678901234567890,1e400,0.1,1e99999999999]}");
        assertEquals(List.of(9007199254740993L, new BigInteger("12345678901234567890"), new BigDecimal("1e400"), 0.1, Double.POSITIVE_INFINITY), job.args());
        assertEquals("[9007199254740993,12345678901234567890,1e400,0.1,1e99999999999]", job.argsJson());
        assertEquals(0.1, job.arg(3));
    }

    @Test
    @Timeout(20)
    void aMillionDigitsTakeNoHour() throws Unreadable {
        BigInteger number = job("{\"class\":\"A\",\"args\":[" + "7".repeat(1_000_000) + "]}").arg(0, BigInteger.class);
        assertEquals(3_321_928, number.bitLength());
    }

    @Test
    void argsAsTheyStand() throws Unreadable {
        assertEquals("{ \"a\" : 1 }", job(" {\"args\" : { \"a\" : 1 } ,\"class\":\"A\"}").argsJson());
        assertEquals("\"é\"", job("{\"args\":\"é\",\"class\":\"A\"}").argsJson());
        assertEquals("17", job("{\"args\":17,\"class\":\"A\"}").argsJson());
        assertEquals("[]", job("{\"args\":null,\"class\":\"A\"}").argsJson());
        assertEquals(List.of(), job("{\"class\":\"A\"}").args());
    }

    @Test
    void membersTwiceOrWithEscapes() {
        for (String body : List.of("{\"class\":\"A\",\"class\":\"B\"}", "{\"\\u0063lass\":\"A\"}", "{\"class\":\"A\",\"jid\":null,\"jid\":\"x\"}",
                "{\"x\":\"é\\n\",\"class\":\"A\",\"\\u0071ueue\":\"x\"}", "\0{\0}\0", "{\"class\":\"\\ud800\"}")) {
            assertThrows(Unreadable.class, () -> job(body), body);
        }
    }

    @Test
    void membersThatAreNotOurs() throws Unreadable {
        assertEquals("A", job("{\"a\":[{}],\"a\":\"\\u0063\",\"\\u0061\":1,\"class\":\"A\"}").className());
    }

    @Test
    void ownBackoff() throws Unreadable {
        Job job = job("{\"class\":\"A\"}");
        for (Backoff own : List.<Backoff>of((n, e, j) -> null, (n, e, j) -> Duration.ofSeconds(-1))) {
            assertDelay(job, own, 15, 45);
        }
        assertDelay(job, (n, e, j) -> Duration.ofMillis(1500), 1.5, 1.5);
    }

    private static void assertDelay(Job job, Backoff own, double least, double most) {
        Map<String, Object> record = Json.object(Verdict.judge(job, new Exception(), 1000, false, null, own).record());
        double delay = ((Number) record.get("retry_at")).doubleValue() - 1000;
        assertTrue(least <= delay && delay <= most, "delay is " + delay);
    }

    @Test
    void errorsAreNamed() throws Unreadable {
        String body = "{\"class\":\"A\"}";
        assertEquals("java.lang.IllegalStateException", record(body, new IllegalStateException("x")).get("error_class"));
        assertEquals("", record(body, new IllegalStateException()).get("error_message"));
        assertEquals("java.io.IOException", record(body, new Kill("no", new java.io.IOException())).get("error_class"));
        assertEquals("RetryIn", record(body, new RetryIn(Duration.ofSeconds(1), "later")).get("error_class"));
        assertEquals("\uFFFD", record(body, new Exception("\udfff")).get("error_message"));
        assertTrue(record(body, new Exception() {
            private static final long serialVersionUID = 1;

            @Override
            public String getMessage() {
                throw new UnsupportedOperationException();
            }
        }).get("error_message").toString().contains("UnsupportedOperationException"));
    }

    @Test
    void backtracesBeginWhereItBroke() throws Unreadable {
        IllegalStateException error = new IllegalStateException("outer", new IllegalArgumentException("inner"));
        error.setStackTrace(new StackTraceElement[] {
            new StackTraceElement("mine.Mail", "send", "Mail.java", 7), new StackTraceElement("io.github.millracejobs.Task", "run", "Task.java", 1),
        });
        error.getCause().setStackTrace(new StackTraceElement[] {new StackTraceElement("mine.Smtp", "say", "Smtp.java", 9)});
        assertEquals("mine.Mail.send(Mail.java:7)\ncaused by java.lang.IllegalArgumentException: inner\nmine.Smtp.say(Smtp.java:9)",
                record("{\"class\":\"A\",\"backtrace\":true}", error).get("backtrace"));
        assertEquals("mine.Mail.send(Mail.java:7)", record("{\"class\":\"A\",\"backtrace\":1}", error).get("backtrace"));
        assertNull(record("{\"class\":\"A\",\"backtrace\":0}", error).get("backtrace"));
    }

    @Test
    void twentyLinesOfABacktraceAreKept() throws Unreadable {
        Exception error = new Exception();
        StackTraceElement[] places = new StackTraceElement[30];
        Arrays.setAll(places, i -> new StackTraceElement("mine.Mail", "send", "Mail.java", i + 1));
        error.setStackTrace(places);
        assertEquals(20, record("{\"class\":\"A\"}", error).get("backtrace").toString().lines().count());
        assertEquals(20, record("{\"class\":\"A\",\"backtrace\":null}", error).get("backtrace").toString().lines().count());
        assertEquals(30, record("{\"class\":\"A\",\"backtrace\":true}", error).get("backtrace").toString().lines().count());
        assertEquals(3, Json.object(Verdict.judge(Job.of(NewJob.of("A").backtrace(3)), error, 1, false, null, null).record())
                .get("backtrace").toString().lines().count());
        assertNull(Json.object(Verdict.judge(Job.of(NewJob.of("A").backtrace(false)), error, 1, false, null, null).record()).get("backtrace"));
    }

    @Test
    void whatIsTooLargeIsRejected() throws Unreadable {
        Job job = job("{\"class\":\"A\",\"args\":[\"" + "x".repeat(Wire.MAX_RECORD) + "\"]}");
        Outcome outcome = Verdict.judge(job, new Exception("x"), 1, false, null, null);
        assertEquals(Outcome.Then.REJECT, outcome.then());
        assertEquals(Outcome.DEAD, outcome.status());
    }

    @Test
    void cancelledAndStopping() throws Unreadable {
        Job job = job("{\"class\":\"A\"}");
        assertEquals(Outcome.DISCARDED, Verdict.judge(job, new Exception(), 1, false, Job.End.CANCELLED, null).status());
        assertEquals(Outcome.Then.REQUEUE, Verdict.judge(job, new Exception(), 1, true, Job.End.STOPPING, null).then());
        assertEquals(Outcome.FAILED, Verdict.judge(job, new Exception(), 1, true, null, null).status());
    }

    @Test
    void aJobWaitsUntilItIsToEnd() throws Exception {
        Job job = job("{\"class\":\"A\"}");
        assertFalse(job.await(Duration.ofMillis(1)));
        new Thread(job::signalStopping).start();
        assertTrue(job.await(Duration.ofSeconds(60)));
        assertTrue(job.isStopping());
        assertFalse(job.isCancelled());
        job.signalEnd(Job.End.CANCELLED);
        job.signalEnd(Job.End.TIMEOUT);
        assertEquals(Job.End.CANCELLED, job.end());
    }

    @Test
    void whatMakesNoSenseIsNothing() throws Unreadable {
        Job job = job("{\"class\":\"A\",\"timeout\":\"x\",\"backtrace\":{},\"enqueued_at\":\"yesterday\"}");
        assertNull(job.members.timeout());
        assertEquals(20, job.members.backtrace());
        assertNull(job.enqueuedAt());
        assertInstanceOf(String.class, job.toString());
    }
}
