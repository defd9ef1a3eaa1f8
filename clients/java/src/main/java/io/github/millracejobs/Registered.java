package io.github.millracejobs;

/** A handler, with middleware around it, and what was said of it. */
record Registered(Handler run, HandlerOptions options) {}
