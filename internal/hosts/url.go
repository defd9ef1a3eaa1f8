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

// ErrMalformed is returned when the text is not a URL. Its message does not quote the text, which
// may contain a password.
var ErrMalformed = errors.New("malformed URL")

// URL is a URL that names one or more hosts: scheme://user:password@host:port,host:port/path.
type URL struct {
	url.URL          // its Host is empty
	Hosts   []string // as given, with or without a port; at least one
}

// Parse parses a URL with commas in its host part, or several URLs with commas between them. The
// URLs may differ only in their hosts.
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

// split cuts the text at the commas before a scheme.
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
	case strings.HasSuffix(raw, ","): // the comma would count as part of the virtual host
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

// difference names the part in which two URLs differ.
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

// path returns the virtual host of an AMQP URL. No path means "/".
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

// String returns one URL that names all hosts. It contains the password.
func (u URL) String() string { return u.At(strings.Join(u.Hosts, ",")) }

// At returns the URL of one host.
func (u URL) At(host string) string {
	one := u.URL
	one.Host = host
	return one.String()
}

// Names returns the hosts without their ports, each once.
func (u URL) Names() []string {
	var all []string
	for _, host := range u.Hosts {
		all = append(all, (&url.URL{Host: host}).Hostname())
	}
	return unique(all)
}

// Addresses returns the hosts with their ports. port is for a host that names none.
func (u URL) Addresses(port string) []string {
	all := make([]string, len(u.Hosts))
	for i, host := range u.Hosts {
		one := &url.URL{Host: host}
		all[i] = net.JoinHostPort(one.Hostname(), cmp.Or(one.Port(), port))
	}
	return all
}
