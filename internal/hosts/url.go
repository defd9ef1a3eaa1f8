package hosts

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// ErrMalformed is returned for what is no URL. Its text does not quote it: it may hold a password.
var ErrMalformed = errors.New("malformed URL")

// URL is a URL that names one host or several: scheme://user:password@host:port,host:port/path.
type URL struct {
	url.URL          // its Host is empty
	Hosts   []string // as they were given, with a port or without; at least one
}

// Parse reads a URL whose host part may have commas, or several URLs with commas between them. These
// may differ in nothing but their hosts.
func Parse(raw string) (URL, error) {
	var all URL
	parts := split(raw)
	for i, text := range parts {
		if strings.TrimSpace(text) == "" && len(parts) > 1 {
			return URL{}, errEmptyPart
		}
		u, err := parse(text)
		if err != nil {
			return URL{}, err
		}
		if i == 0 {
			all = u
			continue
		}
		if what := difference(all, u); what != "" {
			return URL{}, errors.New("the URLs differ in their " + what + ": several URLs must name hosts of one broker, and be equal otherwise")
		}
		all.Hosts = append(all.Hosts, u.Hosts...)
	}
	all.Hosts = unique(all.Hosts)
	return all, nil
}

var nextURL = regexp.MustCompile(`,\s*[A-Za-z][A-Za-z0-9+.-]*://`)

// split cuts at the commas that stand before a scheme.
func split(raw string) []string {
	var all []string
	from := 0
	for _, at := range nextURL.FindAllStringIndex(raw, -1) {
		all = append(all, raw[from:at[0]])
		from = at[0] + 1
	}
	return append(all, raw[from:])
}

var errEmptyPart = errors.New("the list has an empty part: there is a comma too many")

func parse(raw string) (URL, error) {
	raw = strings.TrimSpace(raw)
	scheme, rest, found := strings.Cut(raw, "://")
	switch {
	case !found:
		return URL{}, ErrMalformed
	case strings.HasSuffix(raw, ","): // it would count as the virtual host's
		return URL{}, errEmptyPart
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	user := strings.LastIndexByte(rest[:end], '@') + 1
	var all URL
	for i, host := range strings.Split(rest[user:end], ",") {
		if host = strings.TrimSpace(host); host == "" && strings.Contains(rest[user:end], ",") {
			return URL{}, errEmptyPart
		}
		u, err := url.Parse(scheme + "://" + rest[:user] + host + rest[end:])
		if err != nil || u.Hostname() == "" {
			return URL{}, ErrMalformed
		}
		if i == 0 {
			all.URL = *u
			all.Host = ""
		}
		all.Hosts = append(all.Hosts, u.Host)
	}
	return all, nil
}

// difference says in words what two URLs do not have in common.
func difference(a, b URL) string {
	switch {
	case a.Scheme != b.Scheme:
		return "schemes"
	case a.User.String() != b.User.String():
		return "users or passwords"
	case path(a) != path(b):
		if strings.HasPrefix(a.Scheme, "http") {
			return "paths"
		}
		return "virtual hosts"
	case a.RawQuery != b.RawQuery:
		return "parameters"
	}
	return ""
}

// path is the virtual host of an AMQP URL: none is "/".
func path(u URL) string {
	if p := strings.TrimPrefix(u.Path, "/"); p != "" {
		return p
	}
	return "/"
}

func unique(all []string) []string {
	var found []string
	for _, host := range all {
		if !slices.Contains(found, host) {
			found = append(found, host)
		}
	}
	return found
}

// String is the one URL that names all hosts. It has the password.
func (u URL) String() string { return u.At(strings.Join(u.Hosts, ",")) }

// At is the URL of one host.
func (u URL) At(host string) string {
	one := u.URL
	one.Host = host
	return one.String()
}

// Names lists the hosts without their ports, each once.
func (u URL) Names() []string {
	var all []string
	for _, host := range u.Hosts {
		all = append(all, (&url.URL{Host: host}).Hostname())
	}
	return unique(all)
}

// Addresses lists the hosts with their ports; port is that of a host that names none.
func (u URL) Addresses(port string) []string {
	all := make([]string, len(u.Hosts))
	for i, host := range u.Hosts {
		one := &url.URL{Host: host}
		all[i] = net.JoinHostPort(one.Hostname(), cmp.Or(one.Port(), port))
	}
	return all
}
