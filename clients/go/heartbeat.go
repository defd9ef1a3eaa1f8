package millrace

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// beat is a heartbeat. The format defines the names of its members.
type beat struct {
	Type           string            `json:"type"`
	Identity       string            `json:"identity"`
	Hostname       string            `json:"hostname"`
	PID            int               `json:"pid"`
	Tag            string            `json:"tag"`
	Concurrency    int               `json:"concurrency"`
	Busy           int               `json:"busy"`
	Beat           float64           `json:"beat"`
	RSSKB          int64             `json:"rss_kb"`
	Queues         []string          `json:"queues"`
	Version        string            `json:"version"`
	StartedAt      float64           `json:"started_at"`
	State          string            `json:"state"`
	Labels         map[string]string `json:"labels"`
	RTT            int64             `json:"rtt_us,omitempty"`
	Weights        map[string]int    `json:"weights,omitempty"`
	Lanes          []beatLane        `json:"lanes"`
	Work           []beatWork        `json:"work"`
	MetricsDropped int64             `json:"metrics_dropped"`
}

type beatLane struct {
	Name        string   `json:"name"`
	Queues      []string `json:"queues"`
	Concurrency int      `json:"concurrency"`
	Busy        int      `json:"busy"`
}

type beatWork struct {
	JID       string  `json:"jid"`
	Class     string  `json:"class"`
	Queue     string  `json:"queue"`
	StartedAt float64 `json:"started_at"`
}

// shownWork is how many running jobs a heartbeat names.
const shownWork = 100

// beats sends heartbeats until the session ends.
func (s *session) beats() {
	tick := time.NewTicker(s.w.cfg.Heartbeat)
	defer tick.Stop()
	var rtt time.Duration
	for {
		rtt = s.heartbeatAfter(rtt)
		select {
		case <-tick.C:
		case <-s.w.beat:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *session) heartbeat() { s.heartbeatAfter(0) }

// heartbeatAfter sends a heartbeat with the duration of the last one, and returns its own duration.
func (s *session) heartbeatAfter(last time.Duration) time.Duration {
	b := s.w.describe()
	b.RTT = last.Microseconds()
	body, err := json.Marshal(b)
	if err != nil {
		return 0 // texts and numbers are always valid
	}
	start := time.Now()
	if s.publishSoon(wire.Heartbeats, body) != nil {
		return 0
	}
	return time.Since(start)
}

func (w *Worker) describe() beat {
	b := beat{
		Type: "heartbeat", Identity: w.identity, Hostname: hostname(), PID: os.Getpid(), Tag: w.cfg.Tag, Beat: wire.Seconds(time.Now()),
		RSSKB: residentKB(), Version: w.cfg.Version, StartedAt: wire.Seconds(w.started), State: w.state(), Labels: w.cfg.Labels,
		Work: []beatWork{}, MetricsDropped: w.metrics.dropped.Load(),
	}
	seen := map[string]bool{}
	for _, l := range w.lanes {
		b.Concurrency += cap(l.slots)
		b.Busy += len(l.slots)
		b.Lanes = append(b.Lanes, beatLane{l.name, l.queues, cap(l.slots), len(l.slots)})
		for i, q := range l.queues {
			if !seen[q] {
				b.Queues = append(b.Queues, q)
			}
			seen[q] = true
			if l.weights != nil {
				if b.Weights == nil {
					b.Weights = map[string]int{}
				}
				b.Weights[q] = l.weights[i]
			}
		}
	}
	for _, t := range w.running.all() {
		if work, ok := t.describe(); ok && len(b.Work) < shownWork {
			b.Work = append(b.Work, work)
		}
	}
	return b
}

func (t *task) describe() (beatWork, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job == nil {
		return beatWork{}, false
	}
	return beatWork{t.job.JID, t.job.Class, t.queue, wire.Seconds(t.since)}, true
}

func (w *Worker) state() string {
	switch {
	case w.stopped.isClosed():
		return wire.StateStopping
	case w.quieted.isClosed():
		return wire.StateQuiet
	}
	return wire.StateRunning
}

// residentKB returns the memory of the process, from Linux, or else what the Go runtime has from
// the system.
func residentKB() int64 {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize()) / 1024
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys / 1024)
}
