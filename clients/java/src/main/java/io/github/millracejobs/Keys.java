package io.github.millracejobs;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;

/** Random and derived ids. */
final class Keys {
    private static final SecureRandom RANDOM = new SecureRandom();

    private Keys() {}

    static String random(int bytes) {
        byte[] id = new byte[bytes];
        RANDOM.nextBytes(id);
        return HexFormat.of().formatHex(id);
    }

    /** Returns the first bytes of a SHA-256 sum, in hex. */
    static String hash(byte[] raw, int bytes) {
        try {
            return HexFormat.of().formatHex(Arrays.copyOf(MessageDigest.getInstance("SHA-256").digest(raw), bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every JVM has it
        }
    }
}
