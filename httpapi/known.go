package httpapi

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

// How long an answer of the broker about a name and password is believed.
const (
	believeRight   = 30 * time.Second
	believeWrong   = 5 * time.Second
	believeOffline = 10 * time.Minute // what was right last, while the broker does not answer
	maxKnown       = 1000             // names and passwords that are remembered
	identifyLimit  = 5 * time.Second
	identifyAtOnce = 4
)

// known remembers what the broker said of names and passwords. It keeps no password: only a keyed hash of both.
type known struct {
	identify func(ctx context.Context, name, password string) (User, error)
	now      func() time.Time
	key      [32]byte
	asking   singleflight.Group
	atOnce   chan struct{}

	mu   sync.Mutex
	said map[digest]verdict
}

type digest [sha256.Size]byte

// verdict is what the broker said, and when.
type verdict struct {
	user User
	err  error
	at   time.Time
}

func newKnown(identify func(ctx context.Context, name, password string) (User, error), now func() time.Time) *known {
	k := &known{identify: identify, now: now, said: map[digest]verdict{}, atOnce: make(chan struct{}, identifyAtOnce)}
	_, _ = rand.Read(k.key[:]) // never fails
	return k
}

func (k *known) digest(name, password string) (d digest) {
	h := hmac.New(sha256.New, k.key[:])
	_, _ = h.Write([]byte(name + "\x00" + password)) // never fails
	h.Sum(d[:0])
	return d
}

// fresh is what the broker said a moment ago; ok is false if it must be asked. tried says that it was right not long ago, so that
// asking again is no guess.
func (k *known) fresh(d digest) (v verdict, ok, tried bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, found := k.said[d]
	age := k.now().Sub(v.at)
	switch {
	case !found:
		return v, false, false
	case v.err != nil:
		return v, age < believeWrong, false
	}
	return v, age < believeRight, age < believeOffline
}

// ask asks the broker, once for all who want to know the same, and remembers the answer. begin may refuse that; end takes the answer, also
// if nobody waits for it any more.
func (k *known) ask(ctx context.Context, d digest, name, password string, begin func() error, end func(error)) (User, error) {
	answer := k.asking.DoChan(string(d[:]), func() (_ any, err error) {
		if err := begin(); err != nil {
			return User{}, err
		}
		defer func() { end(err) }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), identifyLimit)
		defer cancel()
		select {
		case k.atOnce <- struct{}{}:
			defer func() { <-k.atOnce }()
		case <-ctx.Done():
			return User{}, ctx.Err()
		}
		user, err := k.identify(ctx, name, password)
		return user, k.remember(d, user, err)
	})
	select {
	case said := <-answer:
		return said.Val.(User), said.Err
	case <-ctx.Done():
		return User{}, ctx.Err()
	}
}

// remember keeps an answer that settles something.
func (k *known) remember(d digest, user User, err error) error {
	if err != nil && !settles(err) {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.said) >= maxKnown {
		k.forget()
	}
	k.said[d] = verdict{user, err, k.now()}
	return err
}

// settles tells whether an error is about the name and password, not about the broker.
func settles(err error) bool { return errors.Is(err, ErrWrongPassword) || errors.Is(err, ErrNoTag) }

// forget makes room: what is not believed any more goes, then what was wrong, then whatever comes first.
func (k *known) forget() {
	now := k.now()
	for d, v := range k.said {
		if age := now.Sub(v.at); age > believeOffline || v.err != nil {
			delete(k.said, d)
		}
	}
	for d := range k.said {
		if len(k.said) < maxKnown*3/4 {
			return
		}
		delete(k.said, d)
	}
}
