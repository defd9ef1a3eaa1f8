package chaos

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// slot is a place for one sidecar, and for its successors after kills.
type slot struct {
	name   string
	config sidecar.Config
	p      *sidecar.Process
}

// slot creates a place for a sidecar. change may modify its configuration.
func (w *world) slot(name string, change func(*sidecar.Config)) *slot {
	w.t.Helper()
	binary, err := sidecar.Binary()
	require.NoError(w.t, err)
	addr, err := sidecar.FreeAddress()
	require.NoError(w.t, err)
	s := &slot{name: name, config: sidecar.Config{Binary: binary, AMQPURL: w.v.AMQPURL(), ManagementURL: w.v.ManagementURL(), StreamURL: w.v.StreamURL(),
		Addr: addr, LogLevel: "warn"}}
	if change != nil {
		change(&s.config)
	}
	w.mu.Lock()
	w.slots = append(w.slots, s)
	w.mu.Unlock()
	w.t.Cleanup(func() {
		if s.p != nil {
			s.p.Kill()
		}
	})
	return s
}

// run starts a sidecar in its slot. Each process has its own name, by which the journal
// distinguishes it.
func (w *world) run(s *slot) *sidecar.Process {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	s.config.Identity = fmt.Sprintf("%s-%d", s.name, w.serial)
	s.config.Output = &lines{w: w, name: s.config.Identity}
	p, err := sidecar.Start(s.config)
	require.NoError(w.t, err)
	s.p = p
	return p
}

// kill kills the sidecar (SIGKILL), and counts that.
func (w *world) kill(s *slot) {
	w.t.Helper()
	s.p.Kill()
	w.killed = append(w.killed, s.p.Identity)
	w.faults++
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastKill = time.Now()
}

// undisturbed returns the time since the last kill.
func (w *world) undisturbed() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.lastKill)
}

// living returns any sidecar, for requests to its API.
func (w *world) living(n int) *sidecar.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots[n%len(w.slots)].p
}

// leads returns the slot of the leading sidecar, or nil.
func (w *world) leads() *slot {
	for _, s := range w.slots {
		if s.p.Leads() {
			return s
		}
	}
	return nil
}

// leader waits for a leader. It returns nil if there is none in time.
func (w *world) leader(within time.Duration) *sidecar.Process {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); w.pause(10 * time.Millisecond) {
		if s := w.leads(); s != nil {
			return s.p
		}
	}
	return nil
}

// awaitLeader waits for a leader, and fails if there is none.
func (w *world) awaitLeader() *slot {
	w.t.Helper()
	var s *slot
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool { s = w.leads(); return s != nil }, "a sidecar leads")
	return s
}

// where returns the sets that have an entry with this jid.
func (w *world) where(p *sidecar.Process, jid string) (sets []string) {
	for _, set := range []string{"scheduled-jobs", "retries", "dead-jobs"} {
		switch status, _, err := p.Do(http.MethodGet, "/api/"+set+"/"+jid, ""); {
		case err != nil:
			sets = append(sets, fmt.Sprint(err))
		case status == http.StatusOK:
			sets = append(sets, set)
		case status != http.StatusNotFound:
			sets = append(sets, fmt.Sprintf("%s (%d)", set, status))
		}
	}
	return sets
}

// lines writes a process's output to the test's log.
type lines struct {
	w    *world
	name string
}

func (l *lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l.w.t.Logf("%s: %s", l.name, strings.TrimSpace(line))
	}
	return len(b), nil
}
