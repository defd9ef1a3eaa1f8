package millrace

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

const (
	metricsKept   = 10_000
	metricsAtOnce = 500
	metricsAfter  = time.Second
	longestWait   = 1_000_000_000_000 // ms; a longer wait comes from a wrong clock
)

// metrics collects records and sends them in arrays. Adding a record never blocks: a record that
// does not fit is counted and dropped.
type metrics struct {
	identity string
	records  chan wire.MetricRecord
	dropped  atomic.Int64
	flushes  chan chan struct{}
	done     chan struct{}

	mu      sync.Mutex
	session *session
	arrived chan struct{} // closed when there is a session
}

func newMetrics(identity string) *metrics {
	return &metrics{
		identity: identity, records: make(chan wire.MetricRecord, metricsKept), flushes: make(chan chan struct{}), done: make(chan struct{}),
		arrived: make(chan struct{}),
	}
}

func (m *metrics) add(job *RawJob, begin, end time.Time, o outcome) {
	r := wire.MetricRecord{
		Type: "job_metric", Timestamp: wire.Seconds(end), JobClass: job.Class, Queue: job.Queue, DurationMS: end.Sub(begin).Milliseconds(),
		Status: o.status, WorkerIdentity: m.identity, JID: job.JID, Attempt: job.Attempt, ErrorClass: valid(o.class),
	}
	if !job.enqueuedAt.IsZero() && job.RetryCount == 0 {
		if wait := max(begin.Sub(job.enqueuedAt).Milliseconds(), 0); wait <= longestWait {
			r.WaitMS = &wait
		}
	}
	select {
	case m.records <- r:
	default:
		m.dropped.Add(1)
	}
}

// run sends records until close. Without a connection it waits with its batch, and the other
// records stay in the buffer.
func (m *metrics) run() {
	batch := make([]wire.MetricRecord, 0, metricsAtOnce)
	timer := time.NewTimer(metricsAfter)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case r := <-m.records:
			if len(batch) == 0 {
				timer.Reset(metricsAfter)
			}
			if batch = append(batch, r); len(batch) == metricsAtOnce {
				batch = m.send(batch, true)
			}
		case <-timer.C:
			batch = m.send(batch, true)
		case flushed := <-m.flushes:
			batch = m.drain(batch)
			close(flushed)
		case <-m.done:
			return
		}
	}
}

// drain sends all records, if there is a connection.
func (m *metrics) drain(batch []wire.MetricRecord) []wire.MetricRecord {
	for {
		select {
		case r := <-m.records:
			if batch = append(batch, r); len(batch) == metricsAtOnce {
				batch = m.send(batch, false)
			}
		default:
			return m.send(batch, false)
		}
	}
}

var errNoSession = errors.New("no connection")

// send publishes a batch, and returns an empty one. With wait, it waits for a connection.
func (m *metrics) send(batch []wire.MetricRecord, wait bool) []wire.MetricRecord {
	if len(batch) == 0 {
		return batch
	}
	body, err := json.Marshal(batch)
	if err != nil {
		m.dropped.Add(int64(len(batch)))
		return batch[:0]
	}
	for m.publish(body) != nil {
		if !wait {
			m.dropped.Add(int64(len(batch)))
			break
		}
		select {
		case <-m.nextSession():
		case flushed := <-m.flushes: // the worker is ending
			close(flushed)
		case <-m.done:
			return batch[:0]
		}
	}
	return batch[:0]
}

func (m *metrics) publish(body []byte) error {
	m.mu.Lock()
	s := m.session
	m.mu.Unlock()
	if s == nil {
		return errNoSession
	}
	if err := s.metricsCh.Publish("", wire.JobMetrics, false, false, record(wire.JobMetrics, body).Publishing); err != nil {
		m.detach(s)
		return err
	}
	return nil
}

func (m *metrics) attach(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = s
	close(m.arrived)
	m.arrived = make(chan struct{})
}

func (m *metrics) detach(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == s {
		m.session = nil
	}
}

// nextSession returns a channel that is closed when there is a connection.
func (m *metrics) nextSession() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session != nil {
		now := make(chan struct{})
		close(now)
		return now
	}
	return m.arrived
}

// flush returns when all records that were added before are sent, as far as possible.
func (m *metrics) flush() {
	flushed := make(chan struct{})
	select {
	case m.flushes <- flushed:
		<-flushed
	case <-m.done:
	}
}

func (m *metrics) close() { close(m.done) }
