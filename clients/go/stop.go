package millrace

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// lastCall is how long handlers may take to return after their contexts ended.
const lastCall = 500 * time.Millisecond

// settleTime is how long outcomes that are being settled may take when the worker ends.
const settleTime = 2 * time.Second

// RabbitMQ passes 32 acknowledgements of a channel on to a quorum queue at a time. Until the queue
// has carried them out, the channel holds back the others. It forgets those when it closes, and
// their jobs run again.
const (
	// fewAcks is a prefetch with which a consumer never has more acknowledgements on their way.
	fewAcks = 24
	// ackTime is how long the broker gets for the last acknowledgements of other consumers.
	ackTime = time.Second
)

// awaitAcks gives the broker time for the last acknowledgements before the connection is closed. It
// does not wait if the connection is lost, or after a second stop.
func (s *session) awaitAcks() {
	if !slices.ContainsFunc(s.w.lanes, func(l *lane) bool { return l.prefetch() > fewAcks }) {
		return
	}
	timer := time.NewTimer(ackTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.lost:
	case <-s.w.hurried.c:
	}
}

// wait lets the running jobs end within the stop timeout. Then it ends the contexts of those that
// remain.
func (w *Worker) wait() {
	timeout := time.NewTimer(w.cfg.StopTimeout)
	defer timeout.Stop()
	select {
	case <-w.running.none():
		return
	case <-timeout.C:
	case <-w.hurried.c:
	}
	w.running.cancelAll(ErrStopping)
	last := time.NewTimer(lastCall)
	defer last.Stop()
	select {
	case <-w.running.none():
	case <-last.C:
	}
}

// RunWithSignals is Run with the signals that job workers know. SIGTSTP makes the worker quiet;
// Windows has no such signal. SIGTERM and SIGINT stop the worker, and a second one ends the wait
// for running jobs. A program that handles signals itself, for example with signal.NotifyContext,
// calls Run.
func (w *Worker) RunWithSignals(ctx context.Context) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, slices.Concat(quietSignals, []os.Signal{syscall.SIGTERM, syscall.SIGINT})...)
	defer signal.Stop(signals)
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case s := <-signals:
				if slices.Contains(quietSignals, s) {
					w.Quiet()
				} else {
					w.Stop()
				}
			case <-ended:
				return
			}
		}
	}()
	err := w.Run(ctx)
	close(ended)
	<-gone
	return err
}

// running is the set of running jobs, including those whose delivery is lost.
type running struct {
	mu    sync.Mutex
	tasks map[*task]struct{}
	empty chan struct{} // closed while there are none
}

func newRunning() *running {
	r := &running{tasks: map[*task]struct{}{}, empty: make(chan struct{})}
	close(r.empty)
	return r
}

func (r *running) add(t *task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tasks) == 0 {
		r.empty = make(chan struct{})
	}
	r.tasks[t] = struct{}{}
}

func (r *running) remove(t *task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, t)
	if len(r.tasks) == 0 {
		close(r.empty)
	}
}

// none returns a channel that is closed when no job runs.
func (r *running) none() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.empty
}

func (r *running) all() []*task {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*task, 0, len(r.tasks))
	for t := range r.tasks {
		all = append(all, t)
	}
	return all
}

func (r *running) cancelAll(cause error) {
	for _, t := range r.all() {
		t.end(cause)
	}
}

// handBack returns running jobs to their queues, and waits for outcomes that are being settled.
func (r *running) handBack() {
	for _, t := range r.all() {
		t.handBack()
	}
	limit := time.NewTimer(settleTime)
	defer limit.Stop()
	for _, t := range r.all() {
		select {
		case <-t.settled:
		case <-limit.C:
			return
		}
	}
}

func (r *running) cancel(jid string) {
	for _, t := range r.all() {
		if j := t.current(); j != nil && j.JID == jid {
			t.end(ErrCancelled)
		}
	}
}
