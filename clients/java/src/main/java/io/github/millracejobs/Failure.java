package io.github.millracejobs;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** The description of an error in records. */
final class Failure {
    private static final int MAX_CLASS = 1024;
    private static final int MAX_MESSAGE = 10_000;
    private static final String OURS = Failure.class.getPackageName() + ".";

    private Failure() {}

    /**
     * Returns the error to show: a handler's {@link Kill} or {@link RetryIn} may wrap another one.
     */
    private static Throwable shown(Throwable error) {
        boolean says = error instanceof Kill || error instanceof RetryIn;
        return says && error.getCause() != null ? error.getCause() : error;
    }

    static String errorClass(Throwable error) {
        Throwable shown = shown(error);
        String name = shown instanceof Described described ? described.errorClass()
                : shown instanceof Kill ? "Killed"
                : shown instanceof HandBack ? "HandBack"
                : shown instanceof RetryIn ? "RetryIn"
                : shown.getClass().getName();
        name = Wire.valid(name);
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= MAX_CLASS) {
            return name;
        }
        int end = MAX_CLASS;
        while ((bytes[end] & 0xC0) == 0x80) {
            end--;
        }
        return new String(bytes, 0, end, StandardCharsets.UTF_8);
    }

    static String message(Throwable error) {
        String text;
        try {
            text = error.getMessage();
        } catch (Throwable e) { // its getMessage fails
            text = "(" + e.getClass().getName() + " while its text was asked for)";
        }
        if (text == null) {
            return "";
        }
        if (text.codePointCount(0, text.length()) > MAX_MESSAGE) {
            text = text.substring(0, text.offsetByCodePoints(0, MAX_MESSAGE));
        }
        return Wire.valid(text);
    }

    /** Returns the stack of an error, innermost line first. */
    static String backtrace(Throwable error, int lines) {
        Throwable shown = shown(error);
        List<String> own = shown instanceof Described described ? described.backtrace() : null;
        List<String> all = own == null ? places(shown, lines) : own;
        return Wire.valid(String.join("\n", all.subList(0, Math.min(lines, all.size()))));
    }

    private static List<String> places(Throwable error, int most) {
        List<String> lines = new ArrayList<>();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        for (Throwable at = error; at != null && seen.add(at) && lines.size() < most; at = at.getCause()) {
            if (at != error) {
                lines.add("caused by " + errorClass(at) + ": " + message(at));
            }
            for (StackTraceElement place : at.getStackTrace()) {
                if (lines.size() < most && !isOurs(place)) {
                    lines.add(place.toString());
                }
            }
        }
        return lines;
    }

    /** Returns whether a line of a stack is the library's, which called the handler. */
    private static boolean isOurs(StackTraceElement place) {
        String name = place.getClassName();
        return name.startsWith(OURS) && name.indexOf('.', OURS.length()) < 0 || name.startsWith("java.util.concurrent.ThreadPoolExecutor")
                || name.equals("java.lang.Thread");
    }
}
