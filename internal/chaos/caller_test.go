package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// caller is a client of the REST API. It asks any sidecar, and repeats what is not answered for sure, as the documents say is safe.
type caller struct {
	w      *world
	random *rand.Rand
}

// callers has so many clients at work until it is told to stop, which waits until what they were at is answered.
func (w *world) callers(n int, work func(ctx context.Context, c *caller, i int)) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var working sync.WaitGroup
	for i := range n {
		c := &caller{w: w, random: rand.New(rand.NewPCG(w.random.Uint64(), uint64(i)))} //nolint:gosec // small
		working.Go(func() { work(ctx, c, i) })
	}
	return func() {
		cancel()
		working.Wait()
	}
}

func (c *caller) chance(percent int) bool { return c.random.IntN(100) < percent }

// try asks any sidecar once. The status is 0 where nobody answers: it may have been done or not, as with those from 500 on.
func (c *caller) try(method, path, body string, headers ...string) (status int, answer []byte) {
	p := c.w.living(c.random.IntN(100))
	if p == nil {
		return 0, nil
	}
	status, answer, err := p.Do(method, path, body, headers...)
	if err != nil {
		return 0, nil
	}
	return status, answer
}

func unsure(status int) bool { return status == 0 || status >= http.StatusInternalServerError }

// call asks until it is answered for sure. repeated tells how often it was not.
func (c *caller) call(method, path, body string, headers ...string) (status int, answer []byte, repeated int) {
	for deadline := time.Now().Add(patient); ; c.w.pause(100 * time.Millisecond) {
		status, answer = c.try(method, path, body, headers...)
		if !unsure(status) || time.Now().After(deadline) {
			return status, answer, repeated
		}
		repeated++
	}
}

// read asks for something until it is there.
func (c *caller) read(path string, into any) bool {
	status, answer, _ := c.call(http.MethodGet, path, "")
	return status == http.StatusOK && json.Unmarshal(answer, into) == nil
}

// faults are promises that were broken, noted by many at once.
type faults struct {
	mu  sync.Mutex
	all []string
}

func (f *faults) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fmt.Sprintf(format, args...))
}
