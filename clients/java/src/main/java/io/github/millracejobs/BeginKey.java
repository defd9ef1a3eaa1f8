package io.github.millracejobs;

/** The identity of a job. The jid alone is not enough: two jobs may share it. */
record BeginKey(String jid, String body) {
    static BeginKey of(Job job) {
        return new BeginKey(Wire.valid(job.jid()), Keys.hash(job.bytes(), 8));
    }
}
