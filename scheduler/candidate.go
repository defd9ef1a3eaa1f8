package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// commandsAtHand is how many commands may wait in memory. Further ones are answered 503.
const commandsAtHand = 256

// candidate is a claim of a sidecar to lead, on one connection. It reads what comes through the
// lock: its own pings, which renew its lease, pings of others, which it answers while it leads, and
// commands.
type candidate struct {
	claim     *broker.Lock
	user      string // of the connection
	id        string // begins the ids of its pings
	lease     *lease // nil if the lock is exclusive: it ends with the connection
	responder *responder
	log       *slog.Logger
	commands  chan wire.Delivery
	active    chan struct{} // closed when this sidecar has the lock
	activeAt  time.Time     // when; set before active is closed
	leads     atomic.Bool   // pings are answered
	renewed   time.Time     // when the channel of the pings was renewed
	pingNow   chan struct{} // asks for a ping
	asked     time.Time     // when the epoch asked whether this sidecar still has the lock
	left      leftovers     // of the epoch before, if this claim led it
}

func newCandidate(claim *broker.Lock, user string, replier *responder, log *slog.Logger) *candidate {
	c := &candidate{claim: claim, user: user, id: random(), responder: replier, log: log,
		commands: make(chan wire.Delivery, commandsAtHand), active: make(chan struct{}), pingNow: make(chan struct{}, 1)}
	if claim.Exclusive {
		c.activeAt = time.Now()
		close(c.active)
	} else {
		c.lease = newLease(time.Now)
	}
	return c
}

// run sends pings and reads what comes through the lock, until ctx or the lock ends.
func (c *candidate) run(ctx context.Context) {
	ticks := time.NewTicker(pingEvery)
	defer ticks.Stop()
	c.ping()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			c.renewPings(ctx)
			c.ping()
		case <-c.pingNow:
			c.ping()
		case d, open := <-c.claim.Inbox.Deliveries():
			if !open {
				return
			}
			c.receive(d)
		}
	}
}

// ping sends a ping. One that cannot be sent does not come back, which ends the lease.
func (c *candidate) ping() {
	if c.lease == nil {
		return
	}
	if err := c.claim.Ping(c.id + "/" + strconv.FormatInt(c.lease.Send(), 10)); err != nil {
		c.log.Debug("scheduler: cannot send a ping", "error", err)
	}
}

// renewPings has pings sent on another channel where those of the active consumer do not come back.
// The broker may lose all that one channel sends: see broker.Lock.RenewPings.
func (c *candidate) renewPings(ctx context.Context) {
	if c.lease == nil || !c.isActive() {
		return
	}
	now := time.Now()
	if now.Sub(c.activeAt) < pingsLost || now.Sub(c.renewed) < pingsLost || c.lease.Unanswered() < pingsLost {
		return
	}
	c.renewed = now
	within, cancel := context.WithTimeout(ctx, pingsLost)
	defer cancel()
	if err := c.claim.RenewPings(within); err != nil {
		c.log.Debug("scheduler: cannot renew the channel of the pings", "error", err)
	}
}

func (c *candidate) isActive() bool {
	select {
	case <-c.active:
		return true
	default:
		return false
	}
}

// receive takes in one message. It acknowledges it first: a message that waits for its answer would
// wait for RabbitMQ's consumer timeout too.
func (c *candidate) receive(d wire.Delivery) {
	if err := c.claim.Inbox.Ack(d.Tag, false); err != nil {
		c.log.Debug("scheduler: cannot acknowledge a command", "error", err)
	}
	c.activate()
	if c.isOwnPing(d) {
		return
	}
	if d.Redelivered { // the leader before may have carried it out
		return
	}
	if cmd, err := wire.ParseCommand(d.Body); err == nil && cmd.Command == wire.CommandPing {
		if c.leads.Load() {
			c.responder.send(d, wire.Reply{Status: wire.StatusDone})
		}
		return
	}
	select {
	case c.commands <- d:
	default:
		c.responder.send(d, wire.Reply{Status: wire.StatusUnavailable, Error: "service_unavailable",
			Reason: fmt.Sprintf("%d commands wait for the leader already: nothing was done, try again", commandsAtHand)})
	}
}

// activate notes that the sidecar has the lock: only the active consumer gets messages.
func (c *candidate) activate() {
	if c.isActive() {
		return
	}
	c.activeAt = time.Now()
	if c.lease != nil {
		c.lease.Begin()
	}
	close(c.active)
	c.ping() // nothing is published before one came back
}

// isOwnPing reports whether a message is a ping of this candidate, and renews the lease with it.
func (c *candidate) isOwnPing(d wire.Delivery) bool {
	id, number, _ := strings.Cut(d.CorrelationID, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if c.lease == nil || id != c.id || err != nil || d.UserID != c.user {
		return false
	}
	c.lease.Back(n)
	return true
}

// stillHolds reports whether the sidecar has the lock although its epoch is in the journal: a ping
// came back that was sent since. Otherwise another sidecar may have got the lock before, read that
// the last leader has ended, and begun.
func (c *candidate) stillHolds() bool {
	if c.lease == nil {
		return true
	}
	if c.asked.IsZero() {
		c.asked = time.Now()
		select {
		case c.pingNow <- struct{}{}:
		default:
		}
	}
	return c.lease.HeardSince(c.asked)
}

// mayPublish reports whether the sidecar may act as the leader now.
func (c *candidate) mayPublish() bool { return c.lease == nil || c.lease.Fresh() }

// lost reports whether the sidecar should resign because it no longer hears from the lock.
func (c *candidate) lost(blocked bool) bool { return c.lease != nil && c.lease.Lost(blocked) }
