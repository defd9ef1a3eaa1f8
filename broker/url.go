package broker

import (
	"errors"
	"net/url"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// MaskURL hides the password in a URL, also in one that does not parse.
func MaskURL(raw string) string {
	const mask = "***"
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	at := strings.LastIndexByte(rest, '@') // the last one: an unescaped password may hold others
	if at < 0 {
		return raw
	}
	name, _, hasPassword := strings.Cut(rest[:at], ":")
	if !hasPassword {
		return raw
	}
	return scheme + name + ":" + mask + rest[at:]
}

// parseURL says nothing of what was wrong: the standard library's errors quote the URL with its password.
func parseURL(raw string) (amqp.URI, error) {
	uri, err := amqp.ParseURI(raw)
	if err != nil {
		return amqp.URI{}, errors.New("broker: the AMQP URL is malformed (amqp://user:password@host:port/vhost; reserved characters must be percent-encoded)")
	}
	return uri, nil
}

func splitCredentials(raw string) (base, user, password string, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", "", "", errors.New("broker: the management URL is malformed (http://user:password@host:port; reserved characters must be percent-encoded)")
	}
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/api"), user, password, nil
}
