package io.github.millracejobs.spring;

import io.github.millracejobs.HandlerOptions;
import io.github.millracejobs.Job;
import io.github.millracejobs.Worker;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.scheduling.annotation.Async;
import org.springframework.util.ClassUtils;

/** Registers the methods of beans that {@link JobHandler} marks. */
final class HandlerMethods {
    private static final String PUBLISHER = "org.reactivestreams.Publisher";

    private HandlerMethods() {}

    /** Registers all of them with a worker. */
    static void register(ConfigurableListableBeanFactory beans, Worker worker) {
        for (String name : beans.getBeanDefinitionNames()) {
            if (beans.getBeanDefinition(name).isAbstract() || ScopedProxyUtils.isScopedTarget(name)) {
                continue;
            }
            Class<?> type = AutoProxyUtils.determineTargetClass(beans, name);
            if (type == null || !AnnotationUtils.isCandidateClass(type, JobHandler.class)) {
                continue;
            }
            MethodIntrospector.MetadataLookup<JobHandler> marked = method -> AnnotatedElementUtils.findMergedAnnotation(method, JobHandler.class);
            Map<Method, JobHandler> found = MethodIntrospector.selectMethods(type, marked);
            found.forEach((method, handler) -> register(beans, name, method, handler, worker));
        }
    }

    private static void register(ConfigurableListableBeanFactory beans, String name, Method method, JobHandler handler, Worker worker) {
        refuseAsynchronous(method);
        HandlerOptions options = new HandlerOptions();
        if (!handler.timeout().isEmpty()) {
            options.timeout(DurationStyle.detectAndParse(beans.resolveEmbeddedValue(handler.timeout()), ChronoUnit.SECONDS));
        }
        Object bean = beans.getBean(name);
        Method invocable = AopUtils.selectInvocableMethod(method, bean.getClass());
        invocable.setAccessible(true);
        Parameter[] parameters = method.getParameters();
        worker.handle(beans.resolveEmbeddedValue(handler.value()), job -> invoke(invocable, bean, arguments(job, parameters)), options);
    }

    /** Refuses a method that returns before its work is done: its job would be acknowledged then. */
    private static void refuseAsynchronous(Method method) {
        Class<?> result = method.getReturnType();
        boolean async = Future.class.isAssignableFrom(result) || CompletionStage.class.isAssignableFrom(result)
                || ClassUtils.getAllInterfacesForClassAsSet(result).stream().anyMatch(of -> of.getName().equals(PUBLISHER))
                || result.getName().equals(PUBLISHER)
                || AnnotatedElementUtils.hasAnnotation(method, Async.class)
                || AnnotatedElementUtils.hasAnnotation(method.getDeclaringClass(), Async.class);
        if (async) {
            throw new IllegalStateException(method + ": a job handler must return when its work is done, not a future or a publisher, and not be @Async");
        }
    }

    private static Object[] arguments(Job job, Parameter[] parameters) {
        Object[] values = new Object[parameters.length];
        int next = 0;
        for (int i = 0; i < values.length; i++) {
            values[i] = parameters[i].getType() == Job.class ? job : job.arg(next++, parameters[i].getParameterizedType());
        }
        return values;
    }

    private static void invoke(Method method, Object bean, Object[] values) throws Exception {
        try {
            method.invoke(bean, values);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }
}
