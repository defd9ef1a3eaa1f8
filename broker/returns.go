package broker

import (
	"bytes"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// returns finds out which mandatory messages came back. The broker returns the message itself,
// before its confirm and without its tag. So a message is recognised by its content.
type returns struct {
	mu   sync.Mutex
	sent []*mandatory
}

type mandatory struct {
	message  wire.Message
	returned bool
}

func (r *returns) expect(m wire.Message) *mandatory {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := &mandatory{message: m}
	r.sent = append(r.sent, sent)
	return sent
}

// watch is expect. returned reports whether the message came back, and must be called once.
func (r *returns) watch(m wire.Message) (returned func() bool) {
	sent := r.expect(m)
	return func() bool {
		defer r.forget(sent)
		return r.has(sent)
	}
}

func (r *returns) forget(sent *mandatory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = slices.DeleteFunc(r.sent, func(other *mandatory) bool { return other == sent })
}

// mark notes that a message came back, and reports whether the message is watched.
func (r *returns) mark(back amqp.Return) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sent := range r.sent {
		m := sent.message
		if !sent.returned && m.Exchange == back.Exchange && m.Key == back.RoutingKey && m.CorrelationID == back.CorrelationId && bytes.Equal(m.Body, back.Body) {
			sent.returned = true
			return true
		}
	}
	return false
}

// has reports whether a confirmed message came back. A return is handled before its confirm is
// reported.
func (r *returns) has(sent *mandatory) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sent.returned
}
