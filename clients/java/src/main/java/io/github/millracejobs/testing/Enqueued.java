package io.github.millracejobs.testing;

import io.github.millracejobs.Job;
import java.time.Instant;

/**
 * A job that was enqueued.
 *
 * @param job the job as its handler gets it
 * @param at when it is due, or null for immediately
 */
public record Enqueued(Job job, Instant at) {}
