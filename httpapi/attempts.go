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

// attempts remembers who failed to sign in, and who tries to.
type attempts struct {
	mu     sync.Mutex
	names  map[string]*rate.Limiter
	trying map[string]int // attempts whose outcome is not known yet
}

func newAttempts() *attempts {
	return &attempts{names: map[string]*rate.Limiter{}, trying: map[string]int{}}
}

// counter is where failures are counted, and how many may be there.
type counter struct {
	key   string
	limit rate.Limit
	burst int
}

func countersOf(addr, name string) []counter {
	return []counter{{addr, rate.Every(forgiveAddr), failuresOfAddr}, {addr + " " + name, rate.Every(forgiveName), failuresOfName}}
}

// begin counts an attempt as if it failed, until end. If too many failed already, it does not count it and returns how long to wait.
func (a *attempts) begin(addr, name string, now time.Time) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counters := countersOf(addr, name)
	for _, c := range counters {
		tokens := float64(c.burst)
		if l := a.names[c.key]; l != nil {
			tokens = l.TokensAt(now)
		}
		if missing := 1 + float64(a.trying[c.key]) - tokens; missing > 0 {
			wait = max(wait, time.Duration(missing/float64(c.limit)*float64(time.Second)))
		}
	}
	if wait == 0 {
		for _, c := range counters {
			a.trying[c.key]++
		}
	}
	return wait
}

// end ends an attempt that has begun.
func (a *attempts) end(addr, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended(addr, name)
}

func (a *attempts) ended(addr, name string) {
	for _, c := range countersOf(addr, name) {
		if a.trying[c.key]--; a.trying[c.key] == 0 {
			delete(a.trying, c.key)
		}
	}
}

// failed notes a failure, and ends the attempt if it had begun. At no moment it counts twice.
func (a *attempts) failed(addr, name string, now time.Time, begun bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tidy(now)
	if begun {
		a.ended(addr, name)
	}
	for _, c := range countersOf(addr, name) {
		a.of(c).AllowN(now, 1)
	}
}

func (a *attempts) of(c counter) *rate.Limiter {
	l := a.names[c.key]
	if l == nil {
		l = rate.NewLimiter(c.limit, c.burst)
		a.names[c.key] = l
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
