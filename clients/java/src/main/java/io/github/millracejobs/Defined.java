package io.github.millracejobs;

import java.util.List;
import java.util.Map;

/**
 * What {@link Client#define} did, by the names of periodic jobs, limits and governed queues.
 *
 * @param made those that are new
 * @param changed those that have another definition now
 * @param forgotten those that the source had defined and does not any more
 * @param unchanged how many are as they are
 */
public record Defined(List<String> made, List<String> changed, List<String> forgotten, int unchanged) {
    /** Returns what the leader did. Throws InvalidException or RefusedException if it did nothing. */
    static Defined by(Map<String, Object> answer) {
        int status = Leader.status(answer);
        if (status == 200 || status == 204) { // 204: it was done before, and that answer was lost
            Map<?, ?> did = answer.get("defined") instanceof Map<?, ?> map ? map : Map.of();
            return new Defined(names(did.get("made")), names(did.get("changed")), names(did.get("forgotten")),
                    did.get("unchanged") instanceof Number unchanged ? unchanged.intValue() : 0);
        }
        String reason = String.valueOf(answer.get("reason"));
        throw status == 400 ? new InvalidException(reason, null) : new RefusedException(reason, null);
    }

    private static List<String> names(Object value) {
        return value instanceof List<?> names ? names.stream().map(String::valueOf).toList() : List.of();
    }
}
