package broker

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Exports for tests that need internals and a broker. Such tests cannot be in package broker,
// because package brokertest imports it.

type Assertion struct{ assertion }

func NewAssertion(c *Conn) *Assertion { return &Assertion{assertion{conn: c}} }

func (a *Assertion) Assert(ctx context.Context, subject string, own bool, exists, declare func(*amqp.Channel) error) (bool, error) {
	return a.assert(ctx, subject, own, exists, declare)
}

func (a *Assertion) Created() []string { return a.top.Created }

// EndPings closes the channel on which pings are sent.
func (l *Lock) EndPings() error { return l.pings.Close() }

func (t Topology) RebuildFire(ctx context.Context) error { return t.rebuildFire(ctx) }

// LockExclusively makes a connection claim the lock as on LavinMQ.
func (c *Conn) LockExclusively() { c.features.ExclusiveLock = true }

func (c *Conn) AMQP() *amqp.Connection { return c.amqp }
