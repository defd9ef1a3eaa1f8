package millrace

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// patienceInside is how long the middleware of one job may take. Then the jobs that wait in next
// get their answers first. The middleware may be waiting for them, for example for a lock that it
// holds around next.
const patienceInside = 50 * time.Millisecond

// throughMiddleware takes jobs through the client's middleware and publishes them in one window.
// Each job runs as far as the middleware's call of next, and waits there. Then all jobs are
// published. Then each call of next returns with the answer for its job. So the middleware sees the
// jobs in order, and no job waits for the confirm of an earlier one.
func (b *bulk) throughMiddleware(ctx context.Context, jobs []EnqueueParams, first int) {
	passes := make([]*pass, 0, len(jobs))
	answered := 0 // how many passes have their answer
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

// pass is one job of a bulk on its way through the middleware, in its own goroutine.
type pass struct {
	client *Client
	job    EnqueueParams
	state  atomic.Int32 // whether the middleware has called next

	reached chan struct{} // closed when it has; then ready and invalid are valid
	ready   ready
	invalid error

	answered chan struct{} // closed when the broker has answered; then result is valid
	result   Result

	ended    chan struct{} // closed when the middleware has returned; then the rest is valid
	jid      string
	err      error
	returned bool
	panicked any
}

const (
	passOutside int32 = iota // the middleware has not called next
	passInside               // it has called next
	passOver                 // it returned without a call of next
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
			p.panicked = recover() // nil after runtime.Goexit
		}
	}()
	p.jid, p.err = p.client.enqueue(context.WithValue(ctx, passKey{}, p), &p.job)
	p.returned = true
}

// isIn waits until the middleware has called next or has returned. It returns false if timeout
// comes first.
func (p *pass) isIn(timeout <-chan time.Time) bool {
	select {
	case <-p.reached:
	case <-p.ended:
	case <-timeout:
		return false
	}
	return true
}

// publishes reports whether the pass has a job to publish. If not, the middleware has returned. It
// must be called after isIn.
func (p *pass) publishes() bool {
	if p.state.CompareAndSwap(passOutside, passOver) {
		return false
	}
	<-p.reached // a goroutine of the middleware may have just called next
	if p.invalid == nil {
		return true
	}
	<-p.ended
	return false
}

// goOut gives the middleware its answer, and returns the middleware's result.
func (p *pass) goOut(answer Result) Result {
	p.result = answer
	close(p.answered)
	<-p.ended
	if p.err != nil {
		return Result{jidOf(p.err), p.err}
	}
	return Result{p.jid, nil}
}

// take reports whether a call of next is the one that the bulk waits for. Every other call
// publishes on its own.
func (p *pass) take() bool { return p.state.CompareAndSwap(passOutside, passInside) }

// publish is the end of the middleware. It hands the job to the bulk, and waits for the answer.
func (p *pass) publish(ctx context.Context, job *EnqueueParams) (string, error) {
	p.ready, p.invalid = job.prepare(time.Now())
	close(p.reached)
	if p.invalid != nil {
		return "", p.invalid
	}
	select {
	case <-p.answered:
		return p.result.JID, p.result.Err
	case <-ctx.Done(): // of a context that the middleware made
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
