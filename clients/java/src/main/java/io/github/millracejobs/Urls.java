package io.github.millracejobs;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** URLs of brokers, and the hosts in them. */
final class Urls {
    private static final Pattern URL = Pattern.compile("(amqps?://)([^/?#]*)(.*)", Pattern.DOTALL);
    private static final Pattern HOST = Pattern.compile("([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+])(?::(.*))?", Pattern.DOTALL);
    private static final Pattern EMPTY_HOST = Pattern.compile("(:[^:]*)?");
    private static final Pattern NEXT_URL = Pattern.compile(",\\s*(?=amqps?://)");
    private static final String NO_HOST = "the broker's URL has an empty host: write amqp://user:password@a,b/vhost";
    private static final Pattern PORT = Pattern.compile("[0-9]{1,5}");
    private static final int LAST_PORT = 65_535;
    private static final String DEFAULT = "amqp://guest:guest@127.0.0.1:5672/";

    private Urls() {}

    /** {@return the URLs that a program gave, or else that of the broker on this machine} */
    static List<String> orDefault(String... urls) {
        return urls.length == 0 ? List.of(DEFAULT) : List.of(urls);
    }

    /**
     * {@return a URL for each host of some URLs} Each text may contain several URLs, separated by
     * commas. Throws IllegalArgumentException with the reason, and never with the password.
     */
    static List<String> split(List<String> urls) {
        Map<String, String> found = new LinkedHashMap<>(); // by host and port
        String rest = null; // the part without host and port, which all URLs must share
        for (String url : urls.stream().flatMap(NEXT_URL::splitAsStream).map(String::strip).toList()) {
            Matcher parts = URL.matcher(url);
            if (!parts.matches()) {
                throw new IllegalArgumentException("the broker's URL must begin with amqp:// or amqps://");
            }
            String scheme = parts.group(1);
            String authority = parts.group(2);
            String tail = parts.group(3);
            int at = authority.lastIndexOf('@') + 1;
            if (url.endsWith(",")) { // the comma would become part of the virtual host
                throw new IllegalArgumentException(NO_HOST);
            }
            if (at == 0 && tail.contains("@")) {
                throw new IllegalArgumentException(
                        "the broker's URL has an @ behind a /, ? or #: write these characters as %40, %2F, %3F and %23");
            }
            String before = scheme + authority.substring(0, at);
            String one = before + (tail.equals("/") ? "" : tail);
            if (rest != null && !rest.equals(one)) {
                throw new IllegalArgumentException("the broker's URLs may differ in host and port only");
            }
            rest = one;
            String hosts = authority.substring(at);
            for (String text : (hosts.isEmpty() ? "localhost" : hosts).split(",", -1)) {
                String host = withPort(text.strip(), scheme);
                found.putIfAbsent(host, before + host + tail);
            }
        }
        if (found.isEmpty()) {
            throw new IllegalArgumentException("no URL of a broker is given");
        }
        found.values().forEach(url -> Link.factory(url, null)); // checks the rest
        return new ArrayList<>(found.values());
    }

    /** {@return a host with its port, or with the default port of the scheme} */
    private static String withPort(String text, String scheme) {
        if (EMPTY_HOST.matcher(text).matches()) {
            throw new IllegalArgumentException(NO_HOST);
        }
        boolean bare = !text.startsWith("[") && text.indexOf(':') != text.lastIndexOf(':');
        Matcher parts = HOST.matcher(text);
        if (bare || !parts.matches()) {
            throw new IllegalArgumentException(
                    "the broker's URL has an invalid host: \"" + text + "\"" + (bare ? " (an IPv6 address needs brackets)" : ""));
        }
        String port = parts.group(2);
        if (port == null) {
            return text + (scheme.equals("amqps://") ? ":5671" : ":5672");
        }
        if (!PORT.matcher(port).matches() || Integer.parseInt(port) < 1 || Integer.parseInt(port) > LAST_PORT) {
            throw new IllegalArgumentException(
                    "the port of host \"" + parts.group(1) + "\" must be a number from 1 to 65535, not \"" + port + "\"");
        }
        return text;
    }
}
