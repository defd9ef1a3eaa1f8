package millrace

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// patienceInside is how long the middleware of one job may take before the jobs that wait inside of it get their answers first: it may
// be waiting for them, as with a lock that is held around next.
const patienceInside = 50 * time.Millisecond

// throughMiddleware takes jobs through the client's middleware and publishes them in one window: each job goes in as far as the
// middleware's call of next, where it waits; then all are published; then each goes back with its answer. So middleware sees the jobs in
// order, and no confirm is waited for before the next job is sent.
func (b *bulk) throughMiddleware(ctx context.Context, jobs []EnqueueParams, first int) {
	passes := make([]*pass, 0, len(jobs))
	answered := 0 // how many of them
	answer := func(upTo int) {
		b.run(ctx)
		for ; answered < upTo; answered++ {
			b.results[first+answered] = passes[answered].goOut(b.results[first+answered])
		}
	}
	patience := time.NewTimer(patienceInside)
	defer patience.Stop()
	for i := range jobs {
		p := newPass(b.client, jobs[i].withDefaults())
		passes = append(passes, p)
		go p.through(ctx)
		patience.Reset(patienceInside)
		if !p.isIn(patience.C) {
			answer(i)
			p.isIn(nil)
		}
		if p.publishes() {
			b.add(first+i, p.ready)
		} else if !p.returned {
			break // it panicked
		}
	}
	answer(len(passes))
	for _, p := range passes {
		p.rethrow()
	}
}

// pass is one job of a bulk on its way through the middleware, in a goroutine of its own.
type pass struct {
	client *Client
	job    EnqueueParams
	state  atomic.Int32 // whether the middleware has called next

	reached chan struct{} // closed when it has, and the next three are valid
	ready   ready
	invalid error

	answered chan struct{} // closed when the broker has answered, and result is valid
	result   Result

	ended    chan struct{} // closed when the middleware has returned, and the rest is valid
	jid      string
	err      error
	returned bool
	panicked any
}

const (
	passOutside int32 = iota // the middleware has not called next yet
	passInside               // it has
	passOver                 // it returned without
)

type passKey struct{}

func newPass(c *Client, job EnqueueParams) *pass {
	return &pass{client: c, job: job, reached: make(chan struct{}), answered: make(chan struct{}), ended: make(chan struct{})}
}

// through runs the middleware.
func (p *pass) through(ctx context.Context) {
	defer close(p.ended)
	defer func() {
		if !p.returned {
			p.panicked = recover() // nil if the goroutine was ended
		}
	}()
	p.jid, p.err = p.client.enqueue(context.WithValue(ctx, passKey{}, p), &p.job)
	p.returned = true
}

// isIn waits until the middleware has called next or has returned. It returns false if the time is over first.
func (p *pass) isIn(timeout <-chan time.Time) bool {
	select {
	case <-p.reached:
	case <-p.ended:
	case <-timeout:
		return false
	}
	return true
}

// publishes reports, when the pass is in, whether there is a job to publish. If not, the middleware has returned.
func (p *pass) publishes() bool {
	if p.state.CompareAndSwap(passOutside, passOver) {
		return false
	}
	<-p.reached // a goroutine of the middleware may be about to call next
	if p.invalid == nil {
		return true
	}
	<-p.ended
	return false
}

// goOut gives the middleware its answer, and returns what it makes of that.
func (p *pass) goOut(answer Result) Result {
	p.result = answer
	close(p.answered)
	<-p.ended
	if p.err != nil {
		return Result{jidOf(p.err), p.err}
	}
	return Result{p.jid, nil}
}

// take reports whether a call of next is the one that the bulk waits for. Every other call publishes by itself.
func (p *pass) take() bool { return p.state.CompareAndSwap(passOutside, passInside) }

// publish is the end of the middleware: it hands the job to the bulk, and waits for the answer.
func (p *pass) publish(ctx context.Context, job *EnqueueParams) (string, error) {
	p.ready, p.invalid = job.prepare(time.Now())
	close(p.reached)
	if p.invalid != nil {
		return "", p.invalid
	}
	select {
	case <-p.answered:
		return p.result.JID, p.result.Err
	case <-ctx.Done(): // of a context of the middleware's own
		return p.ready.jid, p.ready.ended(ctx.Err(), true)
	}
}

// rethrow ends the caller as the middleware ended its goroutine: by a panic, or by runtime.Goexit.
func (p *pass) rethrow() {
	switch {
	case p.panicked != nil:
		panic(p.panicked)
	case !p.returned:
		runtime.Goexit()
	}
}
