package httpapi

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
	"time"
)

const (
	sessionCookie = "millrace_session"
	sessionLasts  = 8 * time.Hour
	maxSession    = 4 << 10 // of a cookie, in bytes
)

// session is what the cookie holds. The cookie is sealed, not only signed: with the password in it every sidecar that has the key can
// ask the broker again, and so a user who is deleted stops working soon, whichever sidecar is asked and however often it is restarted.
type session struct {
	Auth     string `json:"a"` // broker or token: a session ends when the way to sign in changes
	Name     string `json:"n"`
	Password string `json:"p,omitempty"`
	TokenSum string `json:"t,omitempty"`
	Ends     int64  `json:"e"` // seconds since 1970
}

// seal makes sessions into cookies and back.
type seal struct{ aead cipher.AEAD }

// newSeal derives the key from a secret of any length; without one it makes a key that lasts as long as the process.
func newSeal(secret []byte) *seal {
	if len(secret) == 0 {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "millrace session 1", 32)
	if err != nil { // 32 bytes can always be had
		panic(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil { // of the right length
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil { // AES has the right block size
		panic(err)
	}
	return &seal{aead}
}

func (s *seal) write(v session) string {
	plain, err := json.Marshal(v)
	if err != nil { // texts and a number
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil))
}

var errSession = errors.New("the session has ended, or is not one of ours")

func (s *seal) read(cookie string, now time.Time) (v session, err error) {
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

// cookie is how a session reaches a browser; an empty value ends it.
func (s *Server) cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name: sessionCookie, Value: value, Path: s.cfg.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: s.secure(r), MaxAge: int(sessionLasts / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
