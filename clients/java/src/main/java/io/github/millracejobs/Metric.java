package io.github.millracejobs;

/** An attempt that has ended: when it ended, when it had begun, and how long it took. */
record Metric(Job job, Outcome outcome, double end, double begun, long tookMillis) {}
