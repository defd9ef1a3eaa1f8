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
	"time"
)

const (
	sessionCookie = "millrace_session"
	sessionLasts  = 8 * time.Hour
	maxSession    = 4 << 10 // of a cookie, in bytes
)

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
