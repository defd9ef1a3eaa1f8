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

// caller is a client of the REST API. It calls any sidecar, and repeats calls without a certain
// answer, which is safe according to the documentation.
type caller struct {
	w      *world
	random *rand.Rand
}

// callers runs n clients until stop is called. stop waits until their open calls are answered.
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

// try calls any sidecar once. Status 0 means that there was no answer. With that, or a status from
// 500 on, the call may have had its effect or not.
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

// call repeats a request until the answer is certain. repeated is the number of uncertain answers.
func (c *caller) call(method, path, body string, headers ...string) (status int, answer []byte, repeated int) {
	for deadline := time.Now().Add(patient); ; c.w.pause(100 * time.Millisecond) {
		status, answer = c.try(method, path, body, headers...)
		if !unsure(status) || time.Now().After(deadline) {
			return status, answer, repeated
		}
		repeated++
	}
}

// read repeats a GET request until it succeeds.
func (c *caller) read(path string, into any) bool {
	status, answer, _ := c.call(http.MethodGet, path, "")
	return status == http.StatusOK && json.Unmarshal(answer, into) == nil
}

// faults collects broken promises. It is safe for concurrent use.
type faults struct {
	mu  sync.Mutex
	all []string
}

func (f *faults) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fmt.Sprintf(format, args...))
}
