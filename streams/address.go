package streams

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// address is where and as whom the stream protocol is spoken.
type address struct {
	hostPort       string
	host           string
	tls            bool
	user, password string
	vhost          string
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
	// As in AMQP URLs, the vhost is the path without its first slash, percent-encoded: /%2F is the vhost /.
	if vhost := strings.TrimPrefix(u.EscapedPath(), "/"); vhost != "" {
		if a.vhost, err = url.PathUnescape(vhost); err != nil {
			return address{}, fmt.Errorf("streams: stream URL: vhost: %w", err)
		}
	}
	return a, nil
}

func orPort(port, fallback string) string {
	if port == "" {
		return fallback
	}
	return port
}

// withoutURL takes the URL, and with it the password, out of a parse error.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
