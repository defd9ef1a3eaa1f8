package io.github.millracejobs;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Signals, through {@code sun.misc.Signal}. Java has no other access to SIGTSTP, and with its
 * shutdown hooks the process would end with 143 even after a clean stop. It uses reflection,
 * because the compiler warns that the class is internal. It is in the module {@code
 * jdk.unsupported}.
 */
final class Signals implements AutoCloseable {
    private final Map<Object, Object> before = new LinkedHashMap<>();
    private final Class<?> signal;
    private final Class<?> handler;

    Signals() {
        try {
            signal = Class.forName("sun.misc.Signal");
            handler = Class.forName("sun.misc.SignalHandler");
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException("this JVM has no sun.misc.Signal", e);
        }
    }

    /**
     * Runs an action when a signal comes. Throws IllegalStateException if the JVM keeps the signal,
     * as with -Xrs.
     */
    void on(String name, Runnable action) {
        Object proxy = Proxy.newProxyInstance(Signals.class.getClassLoader(), new Class<?>[] {handler}, (self, method, args) ->
                switch (method.getName()) {
                    case "handle" -> {
                        action.run();
                        yield null;
                    }
                    case "equals" -> self == args[0];
                    case "hashCode" -> System.identityHashCode(self);
                    default -> "millrace: " + name;
                });
        try {
            Object number = signal.getConstructor(String.class).newInstance(name);
            before.put(number, install(number, proxy));
        } catch (ReflectiveOperationException e) {
            Throwable why = e instanceof InvocationTargetException ? e.getCause() : e;
            throw new IllegalStateException("SIG" + name + " cannot be heard: " + why.getMessage(), why);
        }
    }

    private Object install(Object number, Object to) throws ReflectiveOperationException {
        return signal.getMethod("handle", signal, handler).invoke(null, number, to);
    }

    /** Restores the previous handlers of the signals. */
    @Override
    public void close() {
        before.forEach((number, to) -> {
            try {
                install(number, to);
            } catch (ReflectiveOperationException e) {
                // The handler was installed, so it can be replaced too.
                throw new IllegalStateException(e);
            }
        });
    }
}
