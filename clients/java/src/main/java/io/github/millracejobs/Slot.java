package io.github.millracejobs;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The slot that a job holds which limits count. Its worker reports that the job has ended. A job
 * that may have begun before is claimed first: the leader says whether it may run.
 */
record Slot(String name) {
    private static final String HEADER = "millrace-slot";
    private static final String CLAIM = "millrace-claim";
    private static final String OP = "millrace-op";
    private static final String EPOCH = "millrace-epoch";
    private static final String REFIRED = "refired";

    /** Returns the slot of a delivery with these headers, or null if it holds none. */
    static Slot of(Map<String, Object> headers) {
        return headers.get(HEADER) instanceof String name && !name.isEmpty() ? new Slot(name) : null;
    }

    /**
     * Returns whether a job may have begun before: it was delivered before, it was fired again, the
     * leader says so, or it was fired before this connection was made.
     */
    static boolean mustClaim(Map<String, Object> headers, boolean redelivered, long below) {
        long epoch = headers.get(EPOCH) instanceof Number number ? number.longValue() : 0;
        return redelivered || headers.containsKey(CLAIM) || REFIRED.equals(headers.get(OP)) || below == Session.UNKNOWN || epoch < below;
    }

    /** Returns the command to the leader that claims it. */
    byte[] claim(String process) {
        return Json.write(Map.of("command", "claim", "slot", name, "process", process));
    }

    /** Returns the record that frees it. */
    Message end(String process) {
        Map<String, Object> record = new LinkedHashMap<>();
        record.put("type", "ended");
        record.put("slot", name);
        record.put("process", process);
        record.put("at", Json.time(Wire.now()));
        return Message.record(Wire.ENDS, Json.write(record));
    }
}
