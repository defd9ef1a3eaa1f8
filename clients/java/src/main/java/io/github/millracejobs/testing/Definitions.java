package io.github.millracejobs.testing;

import io.github.millracejobs.Defined;
import io.github.millracejobs.GovernedQueue;
import io.github.millracejobs.Limit;
import io.github.millracejobs.PeriodicJob;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** What was defined, by source. */
final class Definitions {
    private final Kind<PeriodicJob> periodic = new Kind<>(PeriodicJob::name, PeriodicJob::definition);
    private final Kind<Limit> limits = new Kind<>(Limit::name, Limit::definition);
    private final Kind<GovernedQueue> queues = new Kind<>(GovernedQueue::name, GovernedQueue::definition);

    Defined define(String source, Collection<PeriodicJob> jobs, Collection<Limit> bounds, Collection<GovernedQueue> governed) {
        periodic.check(jobs);
        queues.check(governed);
        List<Defined> did = List.of(periodic.define(source, jobs), limits.define(source, bounds), queues.define(source, governed));
        return new Defined(joined(did, Defined::made), joined(did, Defined::changed), joined(did, Defined::forgotten),
                did.stream().mapToInt(Defined::unchanged).sum());
    }

    private static List<String> joined(List<Defined> did, Function<Defined, List<String>> names) {
        return did.stream().map(names).flatMap(List::stream).toList();
    }

    List<PeriodicJob> periodic(String source) {
        return periodic.of(source);
    }

    List<Limit> limits(String source) {
        return limits.of(source);
    }

    List<GovernedQueue> queues(String source) {
        return queues.of(source);
    }

    private static final class Kind<T> {
        private final Function<T, String> name;
        private final Function<T, Map<String, Object>> definition;
        private final Map<String, List<T>> defined = new HashMap<>();

        Kind(Function<T, String> name, Function<T, Map<String, Object>> definition) {
            this.name = name;
            this.definition = definition;
        }

        /** Throws InvalidException if one breaks a rule. */
        void check(Collection<T> many) {
            if (many != null) {
                definitions(many);
            }
        }

        /** Keeps those of a source in place of what it had. Null leaves what it has. */
        Defined define(String source, Collection<T> many) {
            if (many == null) {
                return new Defined(List.of(), List.of(), List.of(), 0);
            }
            Map<String, Object> before = definitions(of(source));
            Map<String, Object> now = definitions(many);
            defined.put(source, List.copyOf(many));
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

        private Map<String, Object> definitions(Collection<T> many) {
            Map<String, Object> all = new LinkedHashMap<>();
            many.forEach(one -> all.put(name.apply(one), definition.apply(one)));
            return all;
        }

        List<T> of(String source) {
            return defined.getOrDefault(source, List.of());
        }
    }
}
