package broker

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// MaskURL hides the password in a URL, even in a malformed one.
func MaskURL(raw string) string {
	const mask = "***"
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	at := strings.LastIndexByte(rest, '@') // the last one: an unescaped password may contain others
	if at < 0 {
		return raw
	}
	name, _, hasPassword := strings.Cut(rest[:at], ":")
	if !hasPassword {
		return raw
	}
	return scheme + name + ":" + mask + rest[at:]
}

var errMalformed = errors.New("broker: the AMQP URL is malformed (amqp://user:password@host:port/vhost; reserved characters must be percent-encoded)")

// parseURL parses an AMQP URL. It does not say what is malformed, because the standard library's
// errors quote the URL with its password.
func parseURL(raw string) (hosts.URL, error) {
	u, err := hosts.Parse(raw)
	if errors.Is(err, hosts.ErrMalformed) {
		return hosts.URL{}, errMalformed
	}
	if err != nil {
		return hosts.URL{}, fmt.Errorf("broker: AMQP URL: %w", err)
	}
	if _, err := amqp.ParseURI(u.At(u.Hosts[0])); err != nil {
		return hosts.URL{}, errMalformed
	}
	return u, nil
}

// addresses returns the hosts of an AMQP URL with their ports.
func addresses(u hosts.URL) []string {
	if u.Scheme == "amqps" {
		return u.Addresses("5671")
	}
	return u.Addresses("5672")
}
