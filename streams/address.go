package streams

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// address holds the host, the user and the virtual host of a connection over the stream protocol.
type address struct {
	hostPort       string
	host           string // TLS checks this name
	dial           string // hostPort with one IP address of host; empty: any address
	tls            bool
	user, password string
	vhost          string
}

// parseStreamURLs parses a URL with one or more hosts. It returns the address of the first host,
// and host:port of each.
func parseStreamURLs(raw string) (first address, all []string, err error) {
	u, err := hosts.Parse(raw)
	if errors.Is(err, hosts.ErrMalformed) {
		return address{}, nil, errors.New("streams: stream URL: must be rabbitmq-stream://host:port or rabbitmq-stream+tls://host:port")
	}
	if err != nil {
		return address{}, nil, fmt.Errorf("streams: stream URL: %w", err)
	}
	for _, host := range u.Hosts {
		one, err := parseStreamURL(u.At(host))
		if err != nil {
			return address{}, nil, err
		}
		if all = append(all, one.hostPort); len(all) == 1 {
			first = one
		}
	}
	return first, all, nil
}

func parseStreamURL(raw string) (address, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return address{}, fmt.Errorf("streams: stream URL: %w", withoutURL(err))
	}
	a := address{user: "guest", password: "guest", vhost: "/", host: u.Hostname()}
	port := u.Port()
	switch u.Scheme {
	case "rabbitmq-stream":
		port = orPort(port, "5552")
	case "rabbitmq-stream+tls":
		a.tls, port = true, orPort(port, "5551")
	default:
		return address{}, fmt.Errorf("streams: stream URL: scheme is %q, not rabbitmq-stream or rabbitmq-stream+tls", u.Scheme)
	}
	if a.host == "" {
		return address{}, fmt.Errorf("streams: stream URL: no host")
	}
	a.hostPort = net.JoinHostPort(a.host, port)
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	// As in AMQP URLs, the vhost is the path without its first slash, percent-encoded: /%2F is the
	// vhost /.
	if vhost := strings.TrimPrefix(u.EscapedPath(), "/"); vhost != "" {
		if a.vhost, err = url.PathUnescape(vhost); err != nil {
			return address{}, fmt.Errorf("streams: stream URL: vhost: %w", err)
		}
	}
	return a, nil
}

// at returns a copy of a for another host.
func (a address) at(to hosts.Target) address {
	a.hostPort, a.dial = to.Host, to.Address
	a.host, _, _ = net.SplitHostPort(to.Host)
	return a
}

func orPort(port, fallback string) string {
	if port == "" {
		return fallback
	}
	return port
}

// withoutURL removes the URL, and with it the password, from a parse error.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
