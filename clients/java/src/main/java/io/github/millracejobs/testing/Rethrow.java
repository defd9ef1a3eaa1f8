package io.github.millracejobs.testing;

/** A handler's exception is the test's as it is, also where no checked one may be declared. */
final class Rethrow {
    private Rethrow() {}

    /** Something that may throw anything. */
    interface Work {
        void run() throws Exception;
    }

    static void in(Work work) {
        try {
            work.run();
        } catch (Exception e) {
            throw Rethrow.<RuntimeException>unchecked(e);
        }
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> E unchecked(Exception e) throws E {
        throw (E) e;
    }
}
