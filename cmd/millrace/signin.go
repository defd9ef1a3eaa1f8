package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// signInSettings say how a command reaches a sidecar's API, where the defaults do not do.
type signInSettings struct {
	APIURL          string `name:"api-url" env:"MILLRACE_API_URL" placeholder:"URL" help:"The API and the user to sign in as: https://user:password@host:port/prefix. Default: http:// and --http-addr, as the user of --amqp-url."`
	APIPasswordFile string `name:"api-password-file" env:"MILLRACE_API_PASSWORD_FILE" placeholder:"FILE" help:"Read that user's password from this file."`
	APITokenFile    string `name:"api-token-file" env:"MILLRACE_API_TOKEN_FILE" placeholder:"FILE" help:"Sign in with the token in this file instead."`
}

// clientSettings are those of a command that asks a running sidecar.
type clientSettings struct {
	amqpSettings   `group:"Connection flags:"`
	apiSettings    `group:"Connection flags:"`
	signInSettings `group:"Connection flags:"`
}

func (s *clientSettings) client() *client {
	return newClient(&s.apiSettings, &s.amqpSettings, &s.signInSettings)
}

func (s *sidecarSettings) client(in *signInSettings) *client {
	c := newClient(&s.apiSettings, &s.amqpSettings, in)
	if in.APIURL == "" {
		c.base = s.scheme() + "://" + s.HTTPAddr + s.HTTPPrefix
	}
	return c
}

func newClient(api *apiSettings, amqp *amqpSettings, in *signInSettings) *client {
	c := &client{base: "http://" + api.HTTPAddr, http: http.Client{Timeout: clientTimeout}}
	user, from := amqp.credentials(), "--amqp-url"
	if in.APIURL != "" {
		u, err := url.Parse(in.APIURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			c.fault = usage.Errorf("invalid --api-url: use http://host:port or https://user:password@host:port/prefix")
			return c
		}
		if u.User != nil {
			user, from = u.User, "--api-url"
		}
		u.User = nil
		c.base = strings.TrimSuffix(u.String(), "/")
	}
	c.as = fmt.Sprintf("user %q of %s", user.Username(), from)
	if in.APITokenFile != "" {
		c.as = "the bearer of the token in --api-token-file"
	}
	c.authorization, c.fault = in.authorization(user)
	if c.fault == nil && !mayCarrySecrets(c.base) {
		c.fault = usage.Errorf("no password is sent to %s without TLS: use https:// in --api-url", c.base)
	}
	return c
}

// authorization is what a request says of who sends it.
func (in *signInSettings) authorization(user *url.Userinfo) (string, error) {
	if in.APITokenFile != "" {
		token, err := readSecret(in.APITokenFile)
		if err != nil {
			return "", usage.Errorf("--api-token-file: %w", err)
		}
		return "Bearer " + strings.TrimSpace(token), nil
	}
	password, _ := user.Password()
	if in.APIPasswordFile != "" {
		var err error
		if password, err = readSecret(in.APIPasswordFile); err != nil {
			return "", usage.Errorf("--api-password-file: %w", err)
		}
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)), nil
}

// credentials are those of the AMQP URL, or the brokers' default.
func (s *amqpSettings) credentials() *url.Userinfo {
	u := s.amqp()
	return url.UserPassword(userOf(u), passwordOf(u))
}

// mayCarrySecrets tells whether only this machine, or nobody on the way, can read what is sent to an address.
func mayCarrySecrets(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return true // the request will fail
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
