package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

const (
	sessionCookie = "millrace_session"
	sessionLasts  = 8 * time.Hour
	maxSession    = 4 << 10 // of a cookie, in bytes
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

// session is what the cookie holds. The cookie is sealed: with the password in it, every sidecar
// that has the key can ask the broker again, and a user who is deleted loses access soon.
type session struct {
	Auth     string `json:"a"` // broker or token: a session ends when the mode changes
	Name     string `json:"n"`
	Password string `json:"p,omitempty"`
	TokenSum string `json:"t,omitempty"`
	Ends     int64  `json:"e"` // seconds since 1970
}

// seal makes cookies of sessions, and sessions of cookies.
type seal struct{ aead cipher.AEAD }

// newSeal derives the key from a secret of any length; without one, from a random one.
func newSeal(secret []byte) *seal {
	if len(secret) == 0 {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
	}
	key := must(hkdf.Key(sha256.New, secret, nil, "millrace session 1", 32))
	return &seal{must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(key))))}
}

// must returns the result of a call that cannot fail with these arguments.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

func (s *seal) close(v session) string {
	plain := must(json.Marshal(v))
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil))
}

var errSession = errors.New("the session has ended, or is not one of ours")

func (s *seal) open(cookie string, now time.Time) (v session, err error) {
	if len(cookie) > maxSession {
		return v, errSession
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return v, errSession
	}
	plain, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(plain, &v) != nil || now.Unix() >= v.Ends {
		return session{}, errSession
	}
	return v, nil
}
