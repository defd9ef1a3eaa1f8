package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// assertion looks up things on the broker and creates those that are missing.
type assertion struct {
	conn   *Conn
	within time.Duration // limit of one step; 0 means the context alone
	top    TopologyReport
}

// step asserts one thing.
type step struct {
	subject string // the thing's kind and name
	do      func(ctx context.Context, a *assertion) error
}

func (e exchange) step() step {
	return step{"exchange " + e.name, func(ctx context.Context, a *assertion) error { return a.exchange(ctx, e) }}
}

// lookStep checks that an exchange exists, and does not create it.
func (e exchange) lookStep() step {
	return step{"exchange " + e.name, func(ctx context.Context, a *assertion) error {
		if err := a.patiently(ctx, e.exists); err != nil {
			return fmt.Errorf("broker: look for exchange %s: %w", e.name, err)
		}
		return nil
	}}
}

func (q queue) step() step {
	return step{"queue " + q.name, func(ctx context.Context, a *assertion) error { return a.queue(ctx, q) }}
}

func (b binding) step() step {
	return step{"binding of " + b.destination + " to " + b.source, func(ctx context.Context, a *assertion) error {
		return a.conn.request(ctx, b.bind)
	}}
}

func streamSteps(names ...string) (all []step) {
	for _, name := range names {
		all = append(all, stream(name, name == wire.Journal).step())
	}
	return all
}

func (a *assertion) run(ctx context.Context, s step) error {
	if a.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.within)
		defer cancel()
	}
	err := s.do(ctx, a)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("broker: %s: no answer within %v: %w", s.subject, a.within, err)
	}
	return err
}

// all asserts exchanges, then queues, then bindings.
func (a *assertion) all(ctx context.Context, exchanges []exchange, queues []queue, bindings []binding) error {
	var steps []step
	for _, e := range exchanges {
		steps = append(steps, e.step())
	}
	for _, q := range queues {
		steps = append(steps, q.step())
	}
	for _, b := range bindings {
		steps = append(steps, b.step())
	}
	return a.runAll(ctx, steps)
}

// runAll runs steps in order. It continues after an error, so that the result names everything that
// is wrong. It stops when the connection is lost or ctx has ended.
func (a *assertion) runAll(ctx context.Context, steps []step) error {
	var faults []error
	for _, s := range steps {
		err := a.run(ctx, s)
		if faults = append(faults, err); errors.Is(err, ErrLost) || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(faults...)
}

func (a *assertion) exchange(ctx context.Context, e exchange) error {
	_, err := a.assert(ctx, "exchange "+e.name, e.own, e.exists, e.declare)
	return err
}

func (a *assertion) queue(ctx context.Context, q queue) error {
	created, err := a.assert(ctx, "queue "+q.name, q.own, q.exists, q.declare)
	if created && q.name == wire.Journal {
		a.top.JournalCreated = true
	}
	if q.stream && err == nil {
		err = a.mustBeStream(ctx, q)
	}
	return err
}

// assert creates a thing that does not exist. It also declares one that exists, with the arguments
// that it should have. That changes nothing, and a refusal says how they differ.
func (a *assertion) assert(ctx context.Context, subject string, own bool, exists, declare func(*amqp.Channel) error) (created bool, err error) {
	err = a.patiently(ctx, exists)
	missing := IsMissing(err)
	if err != nil && !missing {
		return false, fmt.Errorf("broker: look for %s: %w", subject, err)
	}
	err = a.patiently(ctx, declare)
	switch {
	case err == nil && missing:
		a.top.Created = append(a.top.Created, subject)
		return true, nil
	case err == nil:
		return false, nil
	case missing || own || !hasCode(err, amqp.PreconditionFailed):
		return false, fmt.Errorf("broker: declare %s: %w", subject, err)
	}
	a.differs(subject, err)
	return false, nil
}

func (a *assertion) differs(subject string, err error) {
	var answer *amqp.Error
	errors.As(err, &answer)
	a.top.Findings = append(a.top.Findings, Finding{
		Subject: subject,
		Problem: "was declared otherwise and is used as it is: " + answer.Reason,
		Remedy:  "if that is not intended, delete it while no job is in it; the next start creates it again",
	})
}

// mustBeStream returns an error if a queue of another type stands in a stream's place. Such a queue
// can be read only once.
func (a *assertion) mustBeStream(ctx context.Context, q queue) error {
	for _, f := range a.top.Findings {
		if f.Subject != "queue "+q.name {
			continue
		}
		is := !strings.Contains(f.Problem, "x-queue-type")
		if !a.conn.features.RefusalsNameArguments {
			var err error
			if is, err = a.isStream(ctx, q.name); err != nil {
				return fmt.Errorf("broker: look whether queue %s is a stream: %w", q.name, err)
			}
		}
		if !is {
			return fmt.Errorf("broker: queue %s is not a stream: %s", q.name, f.Problem)
		}
	}
	return nil
}

// isStream reports whether a queue is a stream, on brokers whose refusals do not name the argument
// that differs. It consumes with an invalid priority, so nothing is ever delivered. A stream
// refuses all priorities, a queue refuses this one, and the texts differ.
func (a *assertion) isStream(ctx context.Context, name string) (bool, error) {
	err := a.patiently(ctx, tryRead(name))
	var answer *amqp.Error
	if !hasCode(err, amqp.PreconditionFailed) || !errors.As(err, &answer) {
		return false, err
	}
	return strings.Contains(strings.ToLower(answer.Reason), "stream"), nil
}

// patiently repeats a request while the thing exists but its node, or its stream, is not up yet.
func (a *assertion) patiently(ctx context.Context, fn func(*amqp.Channel) error) error {
	for {
		err := a.conn.request(ctx, fn)
		if !hasCode(err, amqp.NotFound) || IsMissing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-a.conn.done:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TopologyReport is what an assertion found on the broker and did there.
type TopologyReport struct {
	JournalCreated bool      // the journal did not exist: a first start, or it was deleted
	Created        []string  // exchanges and queues that did not exist
	Findings       []Finding // things that exist, but differ from Millrace's declaration
}

// Finding is something on the broker that is not as it should be, in words for a person.
type Finding struct {
	Subject string // kind and name of the thing
	Problem string // what is wrong and what it costs
	Remedy  string // what to do
}
