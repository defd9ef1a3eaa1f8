package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
)

// securitySettings say who may use the REST API, and how.
type securitySettings struct {
	Auth             string   `name:"auth" env:"MILLRACE_AUTH" enum:"auto,broker,token,header,none" default:"auto" help:"How users of the API sign in: broker (as users of the broker), token (of --tokens-file), header (at a proxy, which signs who they are with --auth-header-key), none. auto is broker, or none if there is no management API and only this machine can connect."`
	TokensFile       string   `name:"tokens-file" env:"MILLRACE_TOKENS_FILE" placeholder:"FILE" help:"For --auth=token: lines of a name, a role and the SHA-256 sum of a token."`
	AuthHeaderKey    string   `name:"auth-header-key" env:"MILLRACE_AUTH_HEADER_KEY" placeholder:"KEY" help:"For --auth=header: the secret of 32 bytes or more with which the proxy signs. Set it in the environment: every user of a machine can see its command lines."`
	SessionKeyFile   string   `name:"session-key-file" env:"MILLRACE_SESSION_KEY_FILE" placeholder:"FILE" help:"A file with a secret of 32 bytes or more, the same for all sidecars: browsers stay signed in when a sidecar restarts. Default: a new secret at each start."`
	TLSCert          string   `name:"tls-cert" env:"MILLRACE_TLS_CERT" placeholder:"FILE" help:"The API's TLS certificate, with the intermediate certificates. It is read again when it changes."`
	TLSKey           string   `name:"tls-key" env:"MILLRACE_TLS_KEY" placeholder:"FILE" help:"The private key of the TLS certificate."`
	BehindProxy      bool     `name:"behind-proxy" env:"MILLRACE_BEHIND_PROXY" help:"Set this if a reverse proxy that terminates TLS is the only client: the API may then listen on any address, and trusts X-Forwarded-For and -Proto."`
	HTTPHosts        []string `name:"http-hosts" env:"MILLRACE_HTTP_HOSTS" placeholder:"NAME" help:"Host names under which the API may be reached, besides those of --http-addr and the certificate."`
	HTTPPrefix       string   `name:"http-prefix" env:"MILLRACE_HTTP_PREFIX" placeholder:"/PATH" help:"A prefix of all paths of the API, such as /millrace."`
	Environment      string   `name:"environment" env:"MILLRACE_ENVIRONMENT" placeholder:"NAME" help:"A label that the web UI shows beside its name, such as production or staging."`
	CORSAllowOrigins []string `name:"cors-allow-origins" env:"MILLRACE_CORS_ALLOW_ORIGINS" placeholder:"ORIGIN" help:"Origins whose pages may use the API, such as https://ops.example."`
	ReadOnly         bool     `name:"read-only" env:"MILLRACE_READ_ONLY" help:"Refuse all changes through this sidecar's API."`
	HideArgs         string   `name:"hide-args" env:"MILLRACE_HIDE_ARGS" default:"${hide_args}" placeholder:"PATTERN" help:"Read-only users do not see values in jobs whose names match this regular expression; none: they see all."`
}

// check returns the faults of the settings, before anything is started.
func (s *securitySettings) check() error {
	var faults []error
	fault := func(flag string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		fault("tls-cert", errors.New("needs --tls-key, and the reverse"))
	}
	if (s.Auth == auth.ModeToken) != (s.TokensFile != "") {
		fault("tokens-file", errors.New("needs --auth=token, and the reverse"))
	}
	fault("auth-header-key", s.checkHeaderKey())
	fault("http-prefix", httpapi.CheckPrefix(s.HTTPPrefix))
	fault("cors-allow-origins", auth.CheckOrigins(s.CORSAllowOrigins))
	_, err := s.hideArgs()
	fault("hide-args", err)
	return errors.Join(faults...)
}

func (s *securitySettings) checkHeaderKey() error {
	switch {
	case (s.Auth == auth.ModeHeader) != (s.AuthHeaderKey != ""):
		return errors.New("needs --auth=header, and the reverse")
	case s.AuthHeaderKey != "" && len(s.AuthHeaderKey) < auth.LeastHeaderKey:
		return fmt.Errorf("it has %d bytes, and must have %d: openssl rand -hex 32", len(s.AuthHeaderKey), auth.LeastHeaderKey)
	}
	return nil
}

// hidesNothing is the value of --hide-args that turns it off. An empty value may be forgotten in a
// file.
const hidesNothing = "none"

func (s *securitySettings) hideArgs() (*regexp.Regexp, error) {
	if s.HideArgs == hidesNothing {
		return nil, nil
	}
	return httpapi.ParseHideArgs(s.HideArgs)
}

// auth returns the setting in the API's terms: empty if the API is to find out.
func (s *securitySettings) auth() string {
	if s.Auth == "auto" {
		return ""
	}
	return s.Auth
}

func (s *securitySettings) exposure() auth.Exposure {
	return auth.Exposure{Auth: s.auth(), TLS: s.TLSCert != "", BehindProxy: s.BehindProxy}
}

// secure reads the files that the settings name, and configures the API.
func (s *securitySettings) secure(c *httpapi.Config, log *slog.Logger) (err error) {
	c.Auth, c.TokensFile, c.BehindProxy, c.Hosts, c.Prefix = s.auth(), s.TokensFile, s.BehindProxy, s.HTTPHosts, s.HTTPPrefix
	c.HeaderKey = []byte(s.AuthHeaderKey)
	c.CORSOrigins, c.ReadOnly, c.Environment = s.CORSAllowOrigins, s.ReadOnly, s.Environment
	if c.HideArgs, err = s.hideArgs(); err != nil {
		return fmt.Errorf("--hide-args: %w", err)
	}
	if c.SessionKey, err = s.sessionKey(); err != nil {
		return fmt.Errorf("--session-key-file: %w", err)
	}
	if s.TokensFile != "" {
		if err := auth.CheckTokens(s.TokensFile); err != nil {
			return fmt.Errorf("--tokens-file: %w", err)
		}
	}
	if s.TLSCert != "" {
		if c.TLS, err = auth.LoadTLS(s.TLSCert, s.TLSKey, log); err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
	}
	return nil
}

func (s *securitySettings) scheme() string {
	if s.TLSCert != "" {
		return "https"
	}
	return "http"
}

const leastSessionKey = 32

func (s *securitySettings) sessionKey() ([]byte, error) {
	if s.SessionKeyFile == "" {
		return nil, nil
	}
	key, err := os.ReadFile(s.SessionKeyFile)
	if err == nil && len(key) < leastSessionKey {
		err = fmt.Errorf("%s has %d bytes, and must have %d: head -c 32 /dev/urandom > %s", s.SessionKeyFile, len(key), leastSessionKey, s.SessionKeyFile)
	}
	return key, err
}
