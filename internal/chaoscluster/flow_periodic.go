package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// periodicFlow has periodic jobs for all queues of the row. Their ticks bring jobs, which are
// counted as the others are.
type periodicFlow struct {
	*world
	began    int64 // seconds since 1970
	stop     func()
	outcomes map[string]map[int64]wire.Tick // by name and tick
	wrong    []string
	made     int
}

func newPeriodic(w *world) flow {
	return &periodicFlow{world: w, outcomes: map[string]map[int64]wire.Tick{}}
}

const (
	tickEvery = 2 // seconds
	// foreseen is for how long ticks are expected.
	foreseen = 30 * time.Minute
	// tickPoll is how often outcomes are read. A sidecar has the newest 100 of each periodic job.
	tickPoll = 15 * time.Second
)

func periodicName(queue string) string { return "every-" + queue }

func (f *periodicFlow) begin(ctx context.Context) error {
	f.began = time.Now().Unix()
	var definitions []string
	for _, queue := range f.queues {
		name := periodicName(queue)
		f.outcomes[name] = map[int64]wire.Tick{}
		definitions = append(definitions, fmt.Sprintf(`{"name":%q,"every":%d,"grace":300,"job":{"class":"Tick","queue":%q,"retry":0}}`, name, tickEvery, queue))
		for tick := f.began; tick < f.began+int64(foreseen.Seconds()); tick++ {
			f.jobs.add(wire.TickJID(name, tick), queue, time.Unix(tick, 0))
		}
	}
	if _, err := f.ask(ctx, http.MethodPost, "/api/definitions", `{"source":"chaos","periodic_jobs":[`+strings.Join(definitions, ",")+`]}`); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		for pause.For(ctx, tickPoll) == nil {
			for name := range f.outcomes {
				if raw, failed := f.try(http.MethodGet, "/api/periodic-jobs/"+name, ""); failed == "" {
					f.take(name, raw)
				}
			}
		}
	}()
	f.stop = sync.OnceFunc(func() {
		cancel()
		<-polled
	})
	return nil
}

// take takes in the outcomes that a sidecar has.
func (f *periodicFlow) take(name string, raw []byte) {
	var job struct{ Ticks []wire.Tick }
	if json.Unmarshal(raw, &job) != nil {
		return
	}
	seen := map[int64]bool{}
	for _, t := range job.Ticks {
		if was, ok := f.outcomes[name][t.Tick]; seen[t.Tick] || ok && was.Outcome != t.Outcome {
			f.wrong = append(f.wrong, fmt.Sprintf("%s@%d has two outcomes: %s, %s", name, t.Tick, was.Outcome, t.Outcome))
		}
		seen[t.Tick], f.outcomes[name][t.Tick] = true, t
	}
}

func (f *periodicFlow) end(ctx context.Context) error {
	f.stop()
	for name := range f.outcomes {
		if _, err := f.ask(ctx, http.MethodPut, "/api/periodic-jobs/"+name+"/pause", ""); err != nil {
			return err
		}
	}
	const settled = 5 * time.Second // until each sidecar has read what the leader decided
	if err := pause.For(ctx, settled); err != nil {
		return err
	}
	for _, queue := range f.queues {
		name := periodicName(queue)
		for _, s := range f.slots {
			if status, raw, err := s.process().Do(http.MethodGet, "/api/periodic-jobs/"+name, ""); err == nil && status == http.StatusOK {
				f.take(name, raw)
			}
		}
		for tick := f.began; tick < f.began+int64(foreseen.Seconds()); tick++ {
			if f.outcomes[name][tick].Outcome == wire.TickMade {
				f.jobs.confirm(wire.TickJID(name, tick))
				f.made++
			} else if f.jobs.drop(wire.TickJID(name, tick)) {
				f.wrong = append(f.wrong, fmt.Sprintf("%s@%d: no job was made, and one came", name, tick))
			}
		}
	}
	return nil
}

func (f *periodicFlow) bound(must func(bool, string, ...any)) error {
	must(f.made > 0, "no tick made a job")
	must(len(f.wrong) == 0, "%d ticks were wrong: %.20q", len(f.wrong), f.wrong)
	for name, ticks := range f.outcomes {
		var first, last int64
		for tick, t := range ticks {
			must(t.Why == "" || t.Why == wire.WhyPaused, "tick %d of %s was skipped: %s", tick, name, t.Why)
			if t.Outcome == wire.TickMade && (first == 0 || tick < first) {
				first = tick
			}
			if t.Outcome == wire.TickMade && tick > last {
				last = tick
			}
		}
		for tick := first; tick <= last; tick += tickEvery {
			must(ticks[tick].Outcome == wire.TickMade, "tick %d of %s, between %d and %d, made no job: %q", tick, name, first, last, ticks[tick].Outcome)
		}
	}
	return nil
}

func (f *periodicFlow) close() {
	if f.stop != nil {
		f.stop()
	}
}

func (f *periodicFlow) String() string { return fmt.Sprintf("%d ticks made a job", f.made) }
