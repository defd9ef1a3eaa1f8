package millrace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// hosts are the brokers of a cluster, with the one to which the client connected last.
type hosts struct {
	urls  []string // one for each host
	login login

	mu      sync.Mutex
	url     string  // of the host to which the client connected last
	address string  // of that host
	lost    bool    // it did connect, so a new attempt means that it was lost
	asking  *asking // running call of the function for credentials; nil if there is none
}

// newHosts parses URLs, each of which may name several hosts.
func newHosts(urls []string, login login) (*hosts, error) {
	all, err := splitHosts(urls)
	if err != nil {
		return nil, fmt.Errorf("millrace: %w", err)
	}
	for _, u := range all {
		if _, err := amqp.ParseURI(u); err != nil {
			return nil, fmt.Errorf("millrace: broker's URL: %w", withoutURL(err))
		}
	}
	if err := login.check(all); err != nil {
		return nil, fmt.Errorf("millrace: %w", err)
	}
	return &hosts{urls: all, login: login}, nil
}

// withoutURL removes the URL from an error, because it has a password.
func withoutURL(err error) error {
	var parse *url.Error
	if errors.As(err, &parse) {
		return parse.Err
	}
	return err
}

// DefaultURL is used if a configuration names no broker.
const DefaultURL = "amqp://guest:guest@127.0.0.1:5672/"

// urlsOf returns the URLs of a configuration, which may have one, several, or none.
func urlsOf(url string, urls []string) []string {
	switch {
	case url != "":
		return append([]string{url}, urls...)
	case len(urls) > 0:
		return urls
	}
	return []string{DefaultURL}
}

// dial connects to the first host that accepts this client. It tries each address of each host
// once, and its error has the reason of each failure. All attempts use the same credentials.
// Without credentials there is no attempt.
func (h *hosts) dial(ctx context.Context, name string) (*amqp.Connection, error) {
	config := amqp.Config{Heartbeat: heartbeatEvery, Properties: amqp.NewConnectionProperties(), TLSClientConfig: h.login.tls}
	config.Properties.SetClientConnectionName(name)
	if h.login.credentials != nil {
		auth, err := h.ask(ctx)
		if err != nil {
			return nil, err
		}
		config.SASL = []amqp.Authentication{auth}
	}
	h.mu.Lock()
	lastURL, lastAddress, lost := h.url, h.address, h.lost
	h.mu.Unlock()
	var failures dialErrors
	for _, u := range tryOrder(h.urls, lastURL, lost) {
		addresses, err := lookUp(ctx, u)
		if err != nil {
			failures = append(failures, err)
		}
		for _, address := range tryOrder(addresses, lastAddress, lost) {
			conn, err := dial(ctx, u, address, config)
			if err == nil {
				h.took(u, address, true)
				return conn, nil
			}
			failures = append(failures, fmt.Errorf("%s: %w", address, err))
		}
	}
	h.took(lastURL, lastAddress, false)
	return nil, failures
}

func (h *hosts) took(url, address string, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.url, h.address, h.lost = url, address, lost
}

// dialErrors are the reasons why no host accepted a client.
type dialErrors []error

func (e dialErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e dialErrors) Unwrap() []error { return e }

// lookUp returns the addresses of the host of a URL, with its port.
func lookUp(ctx context.Context, url string) ([]string, error) {
	uri, err := amqp.ParseURI(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, uri.Host)
	for i, a := range addresses {
		addresses[i] = net.JoinHostPort(a, strconv.Itoa(uri.Port))
	}
	return addresses, err
}

// tryOrder returns the order in which to try hosts or addresses. The last good one comes first, or
// last if its connection was just lost. The others are in random order.
func tryOrder(all []string, good string, lost bool) []string {
	others := slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == good })
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	switch {
	case len(others) == len(all):
		return others
	case lost:
		return append(others, good)
	}
	return append([]string{good}, others...)
}

var (
	nextURL = regexp.MustCompile(`,\s*amqps?://`)
	oneURL  = regexp.MustCompile(`^(amqps?://)([^/?#]*)(.*)$`)
	oneHost = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(.*))?$`)
	digits  = regexp.MustCompile(`^[0-9]{1,5}$`)

	errEmptyHost = errors.New("the broker's URL has an empty host: write amqp://user:password@a,b/vhost")
)

// splitURLs returns the URLs of a text in which commas separate them.
func splitURLs(text string) (all []string) {
	from := 0
	for _, at := range nextURL.FindAllStringIndex(text, -1) {
		all = append(all, strings.TrimSpace(text[from:at[0]]))
		from = at[0] + 1
	}
	return append(all, strings.TrimSpace(text[from:]))
}

// splitHosts returns a URL for each host of some texts. Commas may separate several URLs in a text,
// and several hosts in a URL.
func splitHosts(urls []string) ([]string, error) {
	if len(urls) == 0 {
		return nil, errors.New("no URL of a broker is given")
	}
	var single, all []string
	for _, text := range urls {
		single = append(single, splitURLs(text)...)
	}
	seen := map[string]bool{}
	rest := "" // the part of a URL without host and port; the same in all URLs
	for i, u := range single {
		parts := oneURL.FindStringSubmatch(u)
		if parts == nil {
			return nil, errors.New("the broker's URL must begin with amqp:// or amqps://")
		}
		scheme, authority, tail := parts[1], parts[2], parts[3]
		at := strings.LastIndex(authority, "@") + 1
		user, list := authority[:at], authority[at:]
		switch {
		case strings.HasSuffix(u, ","): // the comma would belong to the virtual host
			return nil, errEmptyHost
		case at == 0 && strings.Contains(tail, "@"):
			return nil, errors.New("the broker's URL has an @ behind a /, ? or #: write these characters as %40, %2F, %3F and %23")
		}
		before := rest
		if rest = scheme + user + tail; tail == "/" {
			rest = scheme + user
		}
		if i > 0 && rest != before {
			return nil, errors.New("the broker's URLs may differ in host and port only")
		}
		for host := range strings.SplitSeq(list, ",") {
			if list == "" {
				host = "localhost"
			}
			host, err := withPort(strings.TrimSpace(host), scheme)
			if err != nil {
				return nil, err
			}
			if !seen[host] {
				all = append(all, scheme+user+host+tail)
			}
			seen[host] = true
		}
	}
	return all, nil
}

// withPort returns a host with its port, or with the default port of the scheme.
func withPort(host, scheme string) (string, error) {
	if host == "" || strings.HasPrefix(host, ":") && strings.Count(host, ":") == 1 {
		return "", errEmptyHost
	}
	parts := oneHost.FindStringSubmatch(host)
	switch {
	case !strings.HasPrefix(host, "[") && strings.Count(host, ":") > 1:
		return "", fmt.Errorf("the broker's URL has an invalid host: %q (an IPv6 address needs brackets)", host)
	case parts == nil:
		return "", fmt.Errorf("the broker's URL has an invalid host: %q", host)
	case len(parts[0]) == len(parts[1]):
		return host + map[string]string{"amqp://": ":5672", "amqps://": ":5671"}[scheme], nil
	}
	if port, _ := strconv.Atoi(parts[2]); !digits.MatchString(parts[2]) || port < 1 || port > 65535 {
		return "", fmt.Errorf("the port of host %q must be a number from 1 to 65535, not %q", parts[1], parts[2])
	}
	return host, nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}
