package millrace

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// throughMiddleware takes jobs through the client's middleware and publishes them in one window: each job goes in as far as the
// middleware's call of next, where it waits; then all are published; then each goes back with its answer. So middleware sees one job
// at a time, in order, and no confirm is waited for before the next job is sent.
func (b *bulk) throughMiddleware(ctx context.Context, jobs []EnqueueParams, first int) {
	var passes []*pass
	for i := range jobs {
		p := newPass(b.client, jobs[i].withDefaults())
		passes = append(passes, p)
		if ready := p.goIn(ctx); ready {
			b.add(first+i, p.ready)
		}
		if p.hasEnded() && !p.returned {
			break
		}
	}
	b.run(ctx)
	for i, p := range passes {
		p.result = b.results[first+i]
		close(p.answered)
		<-p.ended
		b.results[first+i] = Result{p.jid, p.err}
		if p.err != nil {
			b.results[first+i].JID = jidOf(p.err)
		}
	}
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

// goIn runs the middleware until it calls next or returns. It reports whether there is a job to publish: if not, the middleware has
// returned.
func (p *pass) goIn(ctx context.Context) bool {
	go func() {
		defer close(p.ended)
		defer func() {
			if !p.returned {
				p.panicked = recover() // nil if the goroutine was ended
			}
		}()
		p.jid, p.err = p.client.enqueue(context.WithValue(ctx, passKey{}, p), &p.job)
		p.returned = true
	}()
	select {
	case <-p.reached:
	case <-p.ended:
		if p.state.CompareAndSwap(passOutside, passOver) {
			return false
		}
		<-p.reached // a goroutine of the middleware is about to
	}
	if p.invalid != nil {
		<-p.ended
		return false
	}
	return true
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

func (p *pass) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
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
