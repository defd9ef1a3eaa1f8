package io.github.millracejobs;

/** The library's version, which is also in pom.xml. */
final class Version {
    static final String OF_LIBRARY = "0.1.0";

    private Version() {}
}
