package example;

/** A service of the application. */
public interface Greeter {
    /** Sends a greeting to this person. */
    void greet(String name);
}
