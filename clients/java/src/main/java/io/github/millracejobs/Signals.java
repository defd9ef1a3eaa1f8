package io.github.millracejobs;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Signals, by way of {@code sun.misc.Signal}: Java has no other way to hear of SIGTSTP, and its shutdown hooks would end the process with 143
 * however well the worker stopped. By reflection, for the compiler calls that class internal; module {@code jdk.unsupported} has it.
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

    /** Has a signal call something. IllegalStateException: the JVM will not give it away (it does not with -Xrs). */
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

    /** Gives the signals back to whom they belonged. */
    @Override
    public void close() {
        before.forEach((number, to) -> {
            try {
                install(number, to);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e); // it could be installed, so this can be, too
            }
        });
    }
}
