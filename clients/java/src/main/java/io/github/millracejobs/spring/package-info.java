/**
 * Spring Boot: a client, and a worker that runs with the application. It needs
 * spring-boot-autoconfigure, on which the library does not depend, and configures itself.
 */
package io.github.millracejobs.spring;
