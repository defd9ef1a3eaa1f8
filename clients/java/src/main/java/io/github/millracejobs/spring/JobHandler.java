package io.github.millracejobs.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes a method of a bean the handler of a class of jobs. Its parameters are the arguments of the
 * job, in their order, as their types; a parameter of type {@link io.github.millracejobs.Job} gets
 * the job. An exception is the job's failure.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface JobHandler {
    /** {@return the class of the jobs} */
    String value();

    /**
     * {@return how long a job may run that has no timeout of its own, such as {@code 30s}; none by
     * default}
     */
    String timeout() default "";
}
