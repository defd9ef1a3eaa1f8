package io.github.millracejobs;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.function.ThrowingConsumer;

/** The vectors that all clients share. */
final class Vectors {
    private Vectors() {}

    /** Tests each case of a file. */
    static Stream<DynamicTest> each(String file, ThrowingConsumer<Case> test) throws IOException {
        List<?> cases = (List<?>) Json.read(Files.readAllBytes(Path.of("../conformance/vectors", file + ".json")));
        Function<Case, String> name = c -> c.text("name");
        return DynamicTest.stream(cases.stream().map(c -> new Case((Map<?, ?>) c)), name, test);
    }

    /** A case. */
    record Case(Map<?, ?> members) {
        Object get(String name) {
            return members.get(name);
        }

        String text(String name) {
            return (String) members.get(name);
        }

        List<String> texts(String name) {
            return ((List<?>) members.get(name)).stream().map(String.class::cast).toList();
        }

        double number(String name) {
            return ((Number) members.get(name)).doubleValue();
        }

        long whole(String name) {
            return ((Number) members.get(name)).longValue();
        }

        Case part(String name) {
            return new Case((Map<?, ?>) members.get(name));
        }

        byte[] body() {
            return members.containsKey("body_base64") ? Base64.getDecoder().decode(text("body_base64"))
                    : text("body").getBytes(StandardCharsets.UTF_8);
        }
    }
}
