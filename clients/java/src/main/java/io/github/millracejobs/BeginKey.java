package io.github.millracejobs;

/** What tells jobs apart: two with one jid are not the same job. */
record BeginKey(String jid, String body) {
    static BeginKey of(Job job) {
        return new BeginKey(Wire.valid(job.jid()), Keys.hash(job.bytes(), 8));
    }
}
