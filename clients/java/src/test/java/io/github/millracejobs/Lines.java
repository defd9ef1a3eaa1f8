package io.github.millracejobs;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.Marker;
import org.slf4j.event.Level;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.helpers.MessageFormatter;

/** A logger that keeps its lines. */
final class Lines extends LegacyAbstractLogger {
    private static final long serialVersionUID = 1;

    private final transient List<Line> lines = new CopyOnWriteArrayList<>();

    /** A line. */
    record Line(Level level, String text, Throwable error) {}

    @Override
    protected String getFullyQualifiedCallerName() {
        return null;
    }

    @Override
    protected void handleNormalizedLoggingCall(Level level, Marker marker, String text, Object[] arguments, Throwable error) {
        if (error != null) {
            error.toString(); // as loggers do that print it
        }
        lines.add(new Line(level, MessageFormatter.basicArrayFormat(text, arguments), error));
    }

    /** Returns the only line that contains a text. */
    Line only(String text) {
        List<Line> found = with(text);
        if (found.size() != 1) {
            throw new AssertionError("one line should have \"" + text + "\": " + lines);
        }
        return found.get(0);
    }

    List<Line> with(String text) {
        return lines.stream().filter(line -> line.text().contains(text)).toList();
    }

    @Override
    public boolean isTraceEnabled() {
        return true;
    }

    @Override
    public boolean isDebugEnabled() {
        return true;
    }

    @Override
    public boolean isInfoEnabled() {
        return true;
    }

    @Override
    public boolean isWarnEnabled() {
        return true;
    }

    @Override
    public boolean isErrorEnabled() {
        return true;
    }
}
