package example;

/** A service of the application. */
public interface Greeter {
    /** Greets somebody. */
    void greet(String name);
}
