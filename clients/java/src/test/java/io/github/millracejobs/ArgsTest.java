package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ArgsTest {
    private static final UUID ID = UUID.fromString("6b1f7a5e-2f5c-4f0e-9d0a-0123456789ab");

    private enum Channel { MAIL, SMS }

    private record Item(String name, int count) {
        Item {
            if (count < 0) {
                throw new IllegalArgumentException("count is negative");
            }
        }
    }

    private record Order(UUID id, Instant at, Optional<String> note, Channel channel, List<Item> items, Map<Channel, BigDecimal> costs,
            Set<LocalDate> days, long[] codes, boolean paid, Item... gifts) {}

    private record Tree(String name, List<Tree> branches) {}

    private record Page<T>(T content) {}

    private record Holder(Page<String> page) {}

    private static Job json(String args) throws Unreadable {
        return Job.read(("{\"class\":\"A\",\"args\":" + args + "}").getBytes(StandardCharsets.UTF_8), "q", Map.of(), "", null);
    }

    private static <T> T one(String arg, Class<T> type) throws Unreadable {
        return json("[null, " + arg + " , \"x\"]").arg(1, type);
    }

    private static String refused(String arg, Class<?> type) {
        return assertThrows(ArgumentException.class, () -> one(arg, type)).getMessage();
    }

    @Test
    void numbers() throws Unreadable {
        int id = one("17", int.class);
        assertEquals(17, id);
        assertEquals(17, one("17", Integer.class));
        assertEquals(17L, one("17.0", Long.class));
        assertEquals(1000, one("1e3", Integer.class));
        assertEquals((short) -3, one("-3", short.class));
        assertEquals((byte) 127, one("127", Byte.class));
        assertEquals(0.1, one("0.1", double.class));
        assertEquals(3.0, one("3", Double.class));
        assertEquals(1.5f, one("1.5", Float.class));
        assertEquals(new BigDecimal("12345678901234567.890"), one("12345678901234567.890", BigDecimal.class));
        assertEquals(new BigInteger("12345678901234567890"), one("12345678901234567890", BigInteger.class));
        assertEquals(5L, one("5", Number.class));
    }

    @Test
    void numbersThatDoNotFit() {
        assertEquals("argument 1 of class A does not fit: it is 3000000000, not int", refused("3000000000", int.class));
        assertEquals("argument 1 of class A does not fit: it is 1.5, not Integer", refused("1.5", Integer.class));
        assertEquals("argument 1 of class A does not fit: it is the text \"17\", not int", refused("\"17\"", int.class));
        assertEquals("argument 1 of class A does not fit: it is null, not int", refused("null", int.class));
        // Which must not be written out.
        for (String far : List.of("1e999999999", "1e-999999999", "1e99999999999")) {
            refused(far, Long.class);
            refused(far, BigInteger.class);
            refused(far, Instant.class);
        }
        refused("1e2000", BigInteger.class);
        refused("1e400", double.class);
        refused("1e300", float.class);
        refused("128", byte.class);
    }

    @Test
    void texts() throws Unreadable {
        assertEquals("é\n", one("\"é\\n\"", String.class));
        assertNull(one("null", String.class));
        assertEquals(Channel.SMS, one("\"SMS\"", Channel.class));
        assertEquals(ID, one("\"" + ID + "\"", UUID.class));
        assertEquals(Instant.parse("2026-11-24T10:00:00Z"), one("\"2026-11-24T12:00:00+02:00\"", Instant.class));
        assertEquals(Instant.ofEpochSecond(1700000000, 250_000_000), one("1700000000.25", Instant.class));
        assertEquals(Duration.ofMinutes(90), one("\"PT1H30M\"", Duration.class));
        assertEquals(URI.create("https://example.com/a"), one("\"https://example.com/a\"", URI.class));
        assertEquals('x', one("\"x\"", char.class));
        assertEquals(true, one("true", boolean.class));
        assertEquals("argument 1 of class A does not fit: it is the text \"FAX\", which is none of [MAIL, SMS]", refused("\"FAX\"", Channel.class));
        assertEquals("argument 1 of class A does not fit: it is the text \"1-1-1-1-1\", not UUID", refused("\"1-1-1-1-1\"", UUID.class));
        assertEquals("argument 1 of class A does not fit: it is the text \"yesterday\", not Instant", refused("\"yesterday\"", Instant.class));
        assertEquals("argument 1 of class A does not fit: it is an object, not String", refused("{}", String.class));
        refused("1", boolean.class);
        refused("\"xy\"", char.class);
        assertTrue(refused("\"" + "x".repeat(1000) + "\"", int.class).length() < 200, "long ones are shortened");
    }

    @Test
    void missingOnes() throws Unreadable {
        Job job = json("[1, null]");
        assertEquals("argument 2 of class A is missing: the job has 2", assertThrows(ArgumentException.class, () -> job.arg(2)).getMessage());
        assertEquals("argument 2 of class A is missing: the job has 2",
                assertThrows(ArgumentException.class, () -> job.arg(2, String.class)).getMessage());
        assertThrows(ArgumentException.class, () -> job.arg(-1, String.class));
        assertThrows(ArgumentException.class, () -> job.argList(2, String.class));
        assertEquals("else", job.arg(2, String.class, "else"));
        assertEquals(7, job.arg(1, int.class, 7));
        assertEquals(1, job.arg(0, int.class, 7));
        assertEquals("args of class A is no array", assertThrows(ArgumentException.class, () -> json("{}").arg(0, String.class)).getMessage());
    }

    @Test
    void lists() throws Unreadable {
        List<Integer> numbers = json("[[1,2]]").argList(0, Integer.class);
        assertEquals(List.of(1, 2), numbers);
        assertEquals(List.of(new Item("a", 1)), json("[[{\"name\":\"a\",\"count\":1}]]").argList(0, Item.class));
        assertEquals("argument 0 of class A does not fit: [1]: it is the text \"x\", not Integer",
                assertThrows(ArgumentException.class, () -> json("[[1,\"x\"]]").argList(0, Integer.class)).getMessage());
        assertEquals(List.of(1L, Map.of("a", 0.5)), one("[1,{\"a\":0.5}]", List.class));
        assertArrayEquals(new int[] {1, 2}, one("[1,2]", int[].class));
    }

    @Test
    void recordsThereAndBack() {
        Order order = new Order(ID, Instant.parse("2026-11-24T10:00:00.123456Z"), Optional.of("ring twice"), Channel.SMS,
                List.of(new Item("tea", 2)), Map.of(Channel.MAIL, new BigDecimal("1.10")), Set.of(LocalDate.of(2026, 11, 24)),
                new long[] {Long.MAX_VALUE}, true, new Item("cup", 1));
        Job job = Job.of(NewJob.of("A", order, List.of(order.items().get(0)), Optional.empty(), ID, 'c', ZonedDateTime.parse("2026-01-01T00:00Z")));
        Order read = job.arg(0, Order.class);
        assertEquals(order.toString().replaceAll("\\[[JL]\\S+", ""), read.toString().replaceAll("\\[[JL]\\S+", ""));
        assertArrayEquals(order.codes(), read.codes());
        assertArrayEquals(order.gifts(), read.gifts());
        assertEquals(Map.of("name", "tea", "count", 2L), ((List<?>) job.arg(1)).get(0));
        assertEquals(Arrays.asList(null, ID.toString(), "c"), ((List<?>) job.args()).subList(2, 5));
        assertEquals(OffsetDateTime.parse("2026-01-01T00:00Z"), job.arg(5, OffsetDateTime.class));
    }

    @Test
    void recordsThatDifferFromTheJob() throws Unreadable {
        Order order = one("{\"paid\":true,\"later\":[{}],\"note\":null}", Order.class);
        assertEquals(Optional.empty(), order.note());
        assertNull(order.items());
        assertEquals(Optional.empty(), one("{\"paid\":false}", Order.class).note());
        assertEquals("argument 1 of class A does not fit: paid: it is missing", refused("{}", Order.class));
        assertEquals("argument 1 of class A does not fit: items[1].count: it is the text \"x\", not int",
                refused("{\"paid\":true,\"items\":[{\"name\":\"a\",\"count\":1},{\"count\":\"x\"}]}", Order.class));
        assertEquals("argument 1 of class A does not fit: items[0]: Item refuses it: count is negative",
                refused("{\"paid\":true,\"items\":[{\"count\":-1}]}", Order.class));
        assertEquals("argument 1 of class A does not fit: it is an array, not Item", refused("[]", Item.class));
        assertEquals("Tree[name=a, branches=[Tree[name=b, branches=null]]]",
                one("{\"name\":\"a\",\"branches\":[{\"name\":\"b\"}]}", Tree.class).toString());
    }

    @Test
    void typesThatItDoesNotKnow() {
        assertTrue(refused("{}", Thread.class).contains("the type java.lang.Thread cannot be read: make it a record, or use a Codec that knows it"));
        assertTrue(refused("{\"page\":{}}", Holder.class).contains("cannot be read"), "T is not known");
        String message = assertThrows(InvalidException.class, () -> Job.of(NewJob.of("A", new Thread()))).getMessage();
        assertTrue(message.contains("java.lang.Thread has no form in JSON: make it a record"), message);
    }

    @Test
    void typedHandlers() {
        List<Object> seen = new ArrayList<>();
        Worker worker = Worker.builder("amqp://nowhere.invalid").logger(new Lines()).build();
        worker.handle("Pack", Item.class, (item, job) -> seen.add(item.count() + " " + item.name() + " " + job.attempt()));
        worker.handle("Late", Item.class, (item, job) -> seen.add(item), new HandlerOptions().retryIn((count, error, job) -> Duration.ofSeconds(1)));
        assertEquals(Attempt.Status.SUCCESS, Attempt.of(worker, NewJob.of("Pack", new Item("tea", 2), "of a later version")).run().status());
        assertEquals(List.of("2 tea 1"), seen);
        Attempt.Result result = Attempt.of(worker, NewJob.of("Late", "tea")).run();
        assertEquals("argument 0 of class Late does not fit: it is the text \"tea\", not Item", result.error().getMessage());
        assertEquals(Duration.ofSeconds(1), result.retryIn());
        assertEquals("argument 0 of class Late is missing: the job has 0", Attempt.of(worker, NewJob.of("Late")).run().error().getMessage());
    }

    @Test
    void fields() throws Unreadable {
        Job job = Job.of(NewJob.of("A", 1).field("tenant", ID).field("user", Map.of("id", 7)).field("none", null));
        assertEquals(List.of("tenant", "user", "none"), List.copyOf(job.fields().keySet()));
        assertEquals(ID.toString(), job.fields().get("tenant"));
        assertEquals(ID, job.field("tenant", UUID.class));
        assertEquals(Map.of("id", 7L), job.field("user", Map.class));
        assertNull(job.field("none", String.class));
        assertNull(job.field("absent", int.class));
        assertNull(job.field("class", String.class), "it is the format's");
        String raw = "{\"\\u0061\":[1, 2] ,\"class\":\"A\",\"a\":-1,\"jid\":null}";
        assertEquals(Map.of("a", -1L), Job.read(raw.getBytes(StandardCharsets.UTF_8), "q", Map.of(), "", null).fields());
        assertThrows(ArgumentException.class, () -> job.field("tenant", int.class));
    }

    @Test
    void jackson() {
        Worker worker = Worker.builder("amqp://nowhere.invalid").logger(new Lines()).codec(new JacksonCodec(new ObjectMapper())).build();
        List<Object> seen = new ArrayList<>();
        worker.handle("Bean", Bean.class, (bean, job) -> seen.add(bean.name + " " + job.argList(1, Item.class)));
        Bean bean = new Bean();
        bean.name = "tea";
        Attempt attempt = Attempt.of(worker, NewJob.of("Bean", bean, List.of(new Item("a", 1))));
        assertEquals("[{\"name\":\"tea\"},[{\"name\":\"a\",\"count\":1}]]", attempt.job().argsJson());
        assertEquals(Attempt.Status.SUCCESS, attempt.run().status());
        assertEquals(List.of("tea [Item[name=a, count=1]]"), seen);
        Throwable error = Attempt.of(worker, NewJob.of("Bean", "x")).run().error();
        assertTrue(error.getMessage().startsWith("argument 0 of class Bean does not fit: "), error.getMessage());
    }

    /** Not a record. */
    public static final class Bean {
        public String name;
    }

    @Test
    void aCodecThatDoesNotWriteJsonIsRefused() {
        for (String text : Arrays.asList(null, "", "{", "1 2", "\ud800", "[".repeat(Json.MAX_DEPTH) + "]".repeat(Json.MAX_DEPTH))) {
            Codec codec = new Codec() {
                @Override
                public String encode(Object value) {
                    return text;
                }

                @Override
                public Object decode(String json, Type type) {
                    return "text";
                }
            };
            assertThrows(InvalidException.class, () -> NewJob.of("A", new Thread()).prepare(1, 0, codec));
            assertEquals("argument 0 of class A does not fit: the codec gave a java.lang.String, not int",
                    assertThrows(ArgumentException.class, () -> Job.of(NewJob.of("A", 1)).use(codec).arg(0, int.class)).getMessage());
        }
    }

    @Test
    void whatACodecWritesStandsAsItIs() {
        Codec codec = new Codec() {
            @Override
            public String encode(Object value) {
                return "{ \"amount\": 1.10, \"deep\": [[1e400]] }";
            }

            @Override
            public Object decode(String json, Type type) {
                return json;
            }
        };
        Publishing publishing = NewJob.of("A", new Thread(), 1).prepare(1, 0, codec);
        assertTrue(new String(publishing.job(), StandardCharsets.UTF_8).contains("\"args\":[{ \"amount\": 1.10, \"deep\": [[1e400]] },1],"));
    }
}
