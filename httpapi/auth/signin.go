package auth

import (
	"net/http"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// Credentials are what a browser signs in with: a name and a password, or a token.
type Credentials struct {
	Name, Password, Token string
}

// SignIn begins a session, and returns its cookie; nil where users are not authenticated.
func (a *Authenticator) SignIn(r *http.Request, given Credentials) (Principal, *http.Cookie, error) {
	mode, err := a.Mode()
	if err != nil {
		return Principal{}, nil, err
	}
	s := session{Auth: mode, Name: given.Name, Password: given.Password, Ends: a.cfg.Now().Add(sessionLasts).Unix()}
	byName, byToken := given.Name != "" && given.Password != "", given.Token != ""
	switch {
	case byName == byToken || byToken && given.Name+given.Password != "":
		return Principal{}, nil, problem.BadRequest("the body must have either name and password, or a token")
	case mode == ModeNone:
		return anonymous, nil, nil
	case mode == ModeHeader || byToken != (mode == ModeToken):
		return Principal{}, nil, unauthorized("sign in %s", howTo[mode])
	case mode == ModeToken:
		s.TokenSum = sumOf(given.Token)
	}
	p, err := a.bySession(r, s)
	if err != nil {
		return Principal{}, nil, err
	}
	if p.Role == NoRole {
		return Principal{}, nil, needsTag(p.Name)
	}
	s.Name = p.Name
	sealed := a.seal.close(s)
	if len(sealed) > maxSession {
		return Principal{}, nil, problem.BadRequest("name and password are too long for a session")
	}
	return p, a.cookie(r, sealed), nil
}

// SignOut returns a cookie that ends the session in the browser that has it.
func (a *Authenticator) SignOut(r *http.Request) *http.Cookie {
	c := a.cookie(r, "")
	c.MaxAge = -1
	return c
}

func (a *Authenticator) cookie(r *http.Request, value string) *http.Cookie {
	secure := r.TLS != nil || a.cfg.BehindProxy && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: a.cfg.CookiePath, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure, MaxAge: int(sessionLasts / time.Second),
	}
}
