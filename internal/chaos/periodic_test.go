package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestPeriodicJobs(t *testing.T) {
	w := begin(t, brokertest.New(t), seed)
	periodicJobs(w, 10, 6)
	t.Log(w.note)
}

// periodicJobs kills leaders around ticks of periodic jobs, which are due each second. Each tick
// must bring exactly one job. Between two kills another sidecar leads, or the same one again.
func periodicJobs(w *world, jobs, kills int) {
	w.two()
	w.warmUp()
	var definitions []string
	for i := range jobs {
		definitions = append(definitions, fmt.Sprintf(`{"name":"every-%d","every":1,"grace":120,"job":{"class":"Tick","queue":%q,"retry":0}}`, i, queues[i%len(queues)]))
	}
	w.ask(http.MethodPost, "/api/definitions", `{"source":"chaos","periodic_jobs":[`+strings.Join(definitions, ",")+`]}`)
	from := map[string]int64{}
	for i := range jobs {
		name := fmt.Sprintf("every-%d", i)
		brokertest.EventuallyWithin(w.t, time.Minute, func() bool {
			if ticks := w.periodic(name).Ticks; len(ticks) > 0 {
				from[name] = ticks[len(ticks)-1].Tick
			}
			return from[name] > 0
		}, "%s has a tick", name)
	}
	for w.faults < kills {
		old := w.awaitLeader()
		next := time.Now().Truncate(time.Second).Add(time.Second + w.upTo(40*time.Millisecond) - 10*time.Millisecond)
		w.pause(time.Until(next)) // when entries and outcomes are on their way
		w.kill(old)
		w.run(old)
		w.awaitLeader()
		w.pause(w.upTo(1500 * time.Millisecond))
	}
	w.awaitLeader()
	ticks := 0
	for i := range jobs {
		name := fmt.Sprintf("every-%d", i)
		w.ask(http.MethodPut, "/api/periodic-jobs/"+name+"/pause", "")
		to := int64(0)
		for _, t := range w.periodic(name).Ticks {
			w.must(t.Why == "" || t.Why == wire.WhyPaused, "tick %d of %s was skipped: %s", t.Tick, name, t.Why)
			if t.Outcome == wire.TickMade {
				to = max(to, t.Tick)
			}
		}
		for tick := from[name]; tick <= to; tick++ {
			w.entry(wire.TickJID(name, tick), wire.ScheduledJobs, queues[i%len(queues)], time.Unix(tick, 0), comes)
			ticks++
		}
	}
	w.note = fmt.Sprintf("%d ticks", ticks)
	w.exactlyOnce()
	w.must(w.counter.distinct() == ticks+len(queues), "%d ticks brought %d jobs", ticks, w.counter.distinct()-len(queues))
}

// ask has the API do something, as soon as a leader can.
func (w *world) ask(method, path, body string) (raw []byte) {
	w.t.Helper()
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool {
		p := w.leader(time.Minute)
		if p == nil {
			return false
		}
		status, got, err := p.Do(method, path, body)
		raw = got
		return err == nil && status < http.StatusMultipleChoices
	}, "%s %s", method, path)
	return raw
}

func (w *world) periodic(name string) (job answer.PeriodicJob) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal(w.ask(http.MethodGet, "/api/periodic-jobs/"+name, ""), &job))
	return job
}
