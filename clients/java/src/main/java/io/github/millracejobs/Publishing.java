package io.github.millracejobs;

/**
 * A job that was checked and encoded: the message, and its content. If {@code at} is null, it is
 * due immediately.
 */
record Publishing(String jid, String queue, byte[] job, Double at, Message message) {}
