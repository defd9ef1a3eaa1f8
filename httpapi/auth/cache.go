package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// How long an answer of the broker about a name and password is valid.
const (
	cacheValid   = 30 * time.Second
	cacheInvalid = 5 * time.Second  // of a wrong password
	cacheOffline = 10 * time.Minute // of a right one, while the broker does not answer
	maxCached    = 1000             // names and passwords
	askTimeout   = 5 * time.Second
	maxAsking    = 4 // questions to the broker at a time
)

// credentialCache remembers the broker's answers, by a keyed hash of name and password.
type credentialCache struct {
	identify func(ctx context.Context, name, password string) (User, error)
	now      func() time.Time
	key      [32]byte
	flight   singleflight.Group
	slots    chan struct{}

	mu      sync.Mutex
	answers map[digest]cached
}

type digest [sha256.Size]byte

// cached is an answer of the broker, and when it came.
type cached struct {
	user User
	err  error
	at   time.Time
}

func newCredentialCache(identify func(ctx context.Context, name, password string) (User, error), now func() time.Time) *credentialCache {
	k := &credentialCache{identify: identify, now: now, answers: map[digest]cached{}, slots: make(chan struct{}, maxAsking)}
	_, _ = rand.Read(k.key[:]) // never fails
	return k
}

func (k *credentialCache) digest(name, password string) (d digest) {
	h := hmac.New(sha256.New, k.key[:])
	_, _ = h.Write([]byte(name + "\x00" + password)) // never fails
	h.Sum(d[:0])
	return d
}

// find returns the last answer. recent reports whether the password was right a short while ago.
func (k *credentialCache) find(d digest) (c cached, valid, recent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, found := k.answers[d]
	age := k.now().Sub(c.at)
	switch {
	case !found:
		return c, false, false
	case c.err != nil:
		return c, age < cacheInvalid, false
	}
	return c, age < cacheValid, age < cacheOffline
}

// ask asks the broker, once for concurrent requests, and keeps the answer. begin may refuse; end
// gets the answer, also if no request waits for it any more.
func (k *credentialCache) ask(ctx context.Context, d digest, name, password string, begin func() error, end func(error)) (User, error) {
	answer := k.flight.DoChan(string(d[:]), func() (_ any, err error) {
		if err := begin(); err != nil {
			return User{}, err
		}
		defer func() { end(err) }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		select {
		case k.slots <- struct{}{}:
			defer func() { <-k.slots }()
		case <-ctx.Done():
			return User{}, ctx.Err()
		}
		user, err := k.identify(ctx, name, password)
		return user, k.remember(d, user, err)
	})
	select {
	case got := <-answer:
		return got.Val.(User), got.Err
	case <-ctx.Done():
		return User{}, ctx.Err()
	}
}

// remember keeps a conclusive answer, and returns its error.
func (k *credentialCache) remember(d digest, user User, err error) error {
	if err != nil && !conclusive(err) {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.answers) >= maxCached {
		k.evict()
	}
	k.answers[d] = cached{user, err, k.now()}
	return err
}

// conclusive reports whether an error is about the name and password, not about the broker.
func conclusive(err error) bool {
	return errors.Is(err, ErrWrongPassword) || errors.Is(err, ErrNoTag)
}

// evict makes room: it removes answers that are too old, wrong passwords, and then any others.
func (k *credentialCache) evict() {
	now := k.now()
	for d, c := range k.answers {
		if age := now.Sub(c.at); age > cacheOffline || c.err != nil {
			delete(k.answers, d)
		}
	}
	for d := range k.answers {
		if len(k.answers) < maxCached*3/4 {
			return
		}
		delete(k.answers, d)
	}
}
