package auth

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many logins may fail, for a name from one address and for an address: so many at first, then
// one in each interval.
const (
	failuresOfName = 10
	failuresOfAddr = 50
	refillName     = 6 * time.Second
	refillAddr     = time.Second
	maxLimiters    = 10_000
	tightLimiters  = maxLimiters * 3 / 4
)

// loginLimiter counts the logins that failed, and those whose outcome is open.
type loginLimiter struct {
	mu      sync.Mutex
	failed  map[string]*rate.Limiter
	pending map[string]int
}

func newLoginLimiter() *loginLimiter {
	return &loginLimiter{failed: map[string]*rate.Limiter{}, pending: map[string]int{}}
}

// counter is where failures are counted, and how many may be there.
type counter struct {
	key   string
	limit rate.Limit
	burst int
}

func countersOf(addr, name string) []counter {
	return []counter{{addr, rate.Every(refillAddr), failuresOfAddr}, {addr + " " + name, rate.Every(refillName), failuresOfName}}
}

// begin counts an attempt as failed until end. If too many have failed, it returns a time to wait.
func (l *loginLimiter) begin(addr, name string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counters := countersOf(addr, name)
	for _, c := range counters {
		tokens := float64(c.burst)
		if failed := l.failed[c.key]; failed != nil {
			tokens = failed.TokensAt(now)
		}
		if missing := 1 + float64(l.pending[c.key]) - tokens; missing > 0 {
			wait = max(wait, time.Duration(missing/float64(c.limit)*float64(time.Second)))
		}
	}
	if wait == 0 {
		for _, c := range counters {
			l.pending[c.key]++
		}
	}
	return wait
}

// end ends an attempt that did not fail.
func (l *loginLimiter) end(addr, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(addr, name)
}

func (l *loginLimiter) forget(addr, name string) {
	for _, c := range countersOf(addr, name) {
		if l.pending[c.key]--; l.pending[c.key] == 0 {
			delete(l.pending, c.key)
		}
	}
}

// fail counts a failure, and ends the attempt if it had begun, in one step: it never counts twice.
func (l *loginLimiter) fail(addr, name string, now time.Time, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy(now)
	if begun {
		l.forget(addr, name)
	}
	for _, c := range countersOf(addr, name) {
		if l.failed[c.key] == nil {
			l.failed[c.key] = rate.NewLimiter(c.limit, c.burst)
		}
		l.failed[c.key].AllowN(now, 1)
	}
}

// tidy removes the limiters that are full again and, if there are still too many, others.
func (l *loginLimiter) tidy(now time.Time) {
	if len(l.failed) < maxLimiters {
		return
	}
	for key, failed := range l.failed {
		if failed.TokensAt(now) >= float64(failed.Burst()) {
			delete(l.failed, key)
		}
	}
	for key := range l.failed {
		if len(l.failed) <= tightLimiters {
			return
		}
		delete(l.failed, key)
	}
}

// block returns what failures are counted for: a user who has one IPv6 address has 2^64 of them.
func block(remote string) string {
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
