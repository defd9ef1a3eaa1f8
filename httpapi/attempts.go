package httpapi

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many attempts to sign in may fail: so many at once, then one in so long. Counted for each name from one address, and for each
// address. What was right lately is not an attempt, so nobody who is signed in is locked out by somebody who guesses.
const (
	failuresOfName  = 10
	failuresOfAddr  = 50
	forgiveName     = 6 * time.Second
	forgiveAddr     = time.Second
	maxRemembered   = 10_000
	rememberedTight = maxRemembered * 3 / 4
)

// attempts remembers who failed to sign in.
type attempts struct {
	mu    sync.Mutex
	names map[string]*rate.Limiter
}

func newAttempts() *attempts { return &attempts{names: map[string]*rate.Limiter{}} }

// refused tells for how long somebody may not try; 0 if they may.
func (a *attempts) refused(addr, name string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var most time.Duration
	for _, key := range []string{addr, addr + " " + name} {
		l := a.names[key]
		if l == nil {
			continue
		}
		if missing := 1 - l.TokensAt(now); missing > 0 {
			most = max(most, time.Duration(missing/float64(l.Limit())*float64(time.Second)))
		}
	}
	return most
}

// failed notes a failure.
func (a *attempts) failed(addr, name string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tidy(now)
	a.of(addr, rate.Every(forgiveAddr), failuresOfAddr).AllowN(now, 1)
	a.of(addr+" "+name, rate.Every(forgiveName), failuresOfName).AllowN(now, 1)
}

func (a *attempts) of(key string, limit rate.Limit, burst int) *rate.Limiter {
	l := a.names[key]
	if l == nil {
		l = rate.NewLimiter(limit, burst)
		a.names[key] = l
	}
	return l
}

// tidy forgets who has been forgiven; where that is not enough, as many others as must be.
func (a *attempts) tidy(now time.Time) {
	if len(a.names) < maxRemembered {
		return
	}
	for key, l := range a.names {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(a.names, key)
		}
	}
	for key := range a.names {
		if len(a.names) <= rememberedTight {
			return
		}
		delete(a.names, key)
	}
}

// blockOf is an address as attempts count it: who has one IPv6 address has 2^64.
func blockOf(remote string) string {
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		return remote
	}
	addr = addr.Unmap()
	if addr.Is6() && !addr.IsLoopback() {
		if prefix, err := addr.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}
