package io.github.millracejobs;

/** A job that was checked and written down: the message, and what stands in it. {@code at} is null for at once. */
record Publishing(String jid, String queue, byte[] job, Double at, Message message) {}
