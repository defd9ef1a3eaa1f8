package io.github.millracejobs.testing;

import io.github.millracejobs.Defined;
import io.github.millracejobs.PeriodicJob;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Periodic jobs that were defined, by source. */
final class Periodic {
    private final Map<String, List<PeriodicJob>> jobs = new HashMap<>();

    Defined define(String source, Collection<PeriodicJob> many) {
        Map<String, Object> before = definitions(of(source));
        Map<String, Object> now = definitions(many);
        jobs.put(source, List.copyOf(many));
        List<String> made = new ArrayList<>();
        List<String> changed = new ArrayList<>();
        now.forEach((name, definition) -> {
            Object was = before.remove(name);
            if (was == null) {
                made.add(name);
            } else if (!was.equals(definition)) {
                changed.add(name);
            }
        });
        return new Defined(made, changed, List.copyOf(before.keySet()), now.size() - made.size() - changed.size());
    }

    private static Map<String, Object> definitions(Collection<PeriodicJob> jobs) {
        Map<String, Object> all = new LinkedHashMap<>();
        jobs.forEach(job -> all.put(job.name(), job.definition()));
        return all;
    }

    List<PeriodicJob> of(String source) {
        return jobs.getOrDefault(source, List.of());
    }
}
