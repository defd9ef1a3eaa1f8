package io.github.millracejobs.spring;

import io.github.millracejobs.HandlerOptions;
import io.github.millracejobs.Job;
import io.github.millracejobs.Worker;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.ParameterizedType;
import java.util.List;
import java.util.Map;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotatedElementUtils;

/** Registers the methods of beans that {@link JobHandler} marks. */
final class HandlerMethods {
    private HandlerMethods() {}

    /** Registers all of them with a worker, and returns how many there are. */
    static int register(ConfigurableListableBeanFactory beans, Worker worker) {
        int count = 0;
        for (String name : beans.getBeanDefinitionNames()) {
            if (beans.getBeanDefinition(name).isAbstract()) {
                continue;
            }
            Class<?> type = AutoProxyUtils.determineTargetClass(beans, name);
            if (type == null) {
                continue;
            }
            Map<Method, JobHandler> found = MethodIntrospector.selectMethods(type,
                    (MethodIntrospector.MetadataLookup<JobHandler>) method -> AnnotatedElementUtils.findMergedAnnotation(method, JobHandler.class));
            for (Map.Entry<Method, JobHandler> entry : found.entrySet()) {
                register(beans, name, entry.getKey(), entry.getValue(), worker);
                count++;
            }
        }
        return count;
    }

    private static void register(ConfigurableListableBeanFactory beans, String name, Method method, JobHandler handler, Worker worker) {
        HandlerOptions options = new HandlerOptions();
        if (!handler.timeout().isEmpty()) {
            options.timeout(DurationStyle.detectAndParse(handler.timeout()));
        }
        Object bean = beans.getBean(name);
        Method invocable = AopUtils.selectInvocableMethod(method, bean.getClass());
        invocable.setAccessible(true);
        Parameter[] parameters = method.getParameters();
        worker.handle(handler.value(), job -> invoke(invocable, bean, arguments(job, parameters)), options);
    }

    private static Object[] arguments(Job job, Parameter[] parameters) {
        Object[] values = new Object[parameters.length];
        int next = 0;
        for (int i = 0; i < values.length; i++) {
            values[i] = parameters[i].getType() == Job.class ? job : argument(job, next++, parameters[i]);
        }
        return values;
    }

    private static Object argument(Job job, int index, Parameter parameter) {
        boolean list = parameter.getType() == List.class && parameter.getParameterizedType() instanceof ParameterizedType;
        if (list && ((ParameterizedType) parameter.getParameterizedType()).getActualTypeArguments()[0] instanceof Class<?> of) {
            return job.argList(index, of);
        }
        return job.arg(index, parameter.getType());
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
