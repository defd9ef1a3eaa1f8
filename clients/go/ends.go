package millrace

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// end is a limited job that has ended.
type end struct {
	task      *task
	slot      string
	confirmed chan struct{} // closed when jobs.ends says that it has ended
}

// reportEnd reports that the job of a delivery has ended. It returns when that is confirmed, and
// returns false if the delivery is lost before.
func (t *task) reportEnd() bool {
	slot := t.slot()
	if slot == "" {
		return true
	}
	e := &end{t, slot, make(chan struct{})}
	select {
	case t.s.ends <- e:
	case <-t.lost:
	case <-t.s.lost:
	}
	select {
	case <-e.confirmed:
		return true
	case <-t.lost:
	case <-t.s.lost:
	}
	return false
}

// reportEnds reports the jobs that end, until the session does. Those that end while a record is
// unconfirmed wait, and then go together.
func (s *session) reportEnds() {
	for {
		select {
		case e := <-s.ends:
			s.report([]*end{e})
		case <-s.ctx.Done():
			return
		}
	}
}

// report writes a record of these jobs and of those that wait. If it is refused, it writes another
// one, without the jobs whose deliveries were lost meanwhile: the broker delivers those again.
func (s *session) report(all []*end) {
	for pause := (pauses{}); ; _ = pause.wait(s.ctx) {
		all = slices.DeleteFunc(s.joined(all), func(e *end) bool { return e.task.isLost() })
		if len(all) == 0 {
			return
		}
		slots := make([]string, len(all))
		for i, e := range all {
			slots[i] = e.slot
		}
		err := s.pub.publish(s.ctx, s.ended(slots...))
		switch {
		case err == nil:
			for _, e := range all {
				close(e.confirmed)
			}
			return
		case errors.Is(err, errLost) || s.ctx.Err() != nil:
			return
		}
		s.w.cfg.Logger.Error("millrace: the broker does not take that a job has ended; it is tried again", "jobs", len(all), "error", err)
	}
}

// joined adds the jobs that wait.
func (s *session) joined(all []*end) []*end {
	for len(all) < wire.MaxEnds {
		select {
		case e := <-s.ends:
			all = append(all, e)
		default:
			return all
		}
	}
	return all
}

// ended returns the record that jobs have ended.
func (s *session) ended(slots ...string) message {
	r := struct {
		Type    string   `json:"type"`
		Slot    string   `json:"slot,omitempty"`
		Slots   []string `json:"slots,omitempty"`
		Process string   `json:"process"`
		At      float64  `json:"at"`
	}{Type: typeEnded, Slots: slots, Process: s.w.identity, At: wire.Seconds(time.Now())}
	if len(slots) == 1 {
		r.Slot, r.Slots = slots[0], nil
	}
	body, _ := json.Marshal(r) // texts and a number can be encoded
	return record(wire.JobEnds, body)
}
