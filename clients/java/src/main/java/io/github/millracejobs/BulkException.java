package io.github.millracejobs;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/** Some jobs of a bulk were not enqueued. */
public final class BulkException extends MillraceException {
    private static final long serialVersionUID = 1;

    private final ArrayList<String> jids;
    private final TreeMap<Integer, MillraceException> errors;

    BulkException(List<String> jids, SortedMap<Integer, MillraceException> errors) {
        super(errors.size() + " of " + jids.size() + " jobs were not enqueued, the first is job " + errors.firstKey() + ": "
                + errors.get(errors.firstKey()).getMessage(), errors.get(errors.firstKey()));
        this.jids = new ArrayList<>(jids);
        this.errors = new TreeMap<>(errors);
    }

    /** {@return a jid for each job, or null for one that was not enqueued} */
    public List<String> jids() {
        return new ArrayList<>(jids);
    }

    /** {@return the error of each job that was not enqueued, by its index} */
    public SortedMap<Integer, MillraceException> errors() {
        return new TreeMap<>(errors);
    }
}
