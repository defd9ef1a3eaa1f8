package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// commander sends commands about its own jobs during a scenario. Half go through the REST API, and
// half to the leader's inbox, as any AMQP client may. It repeats each command until it is answered,
// which is safe according to the documentation.
type commander struct {
	w      *world
	random *rand.Rand
	line   *line
	n      int
}

// command starts sending this many commands per second. stop ends that, when the open ones have
// been answered.
func (w *world) command(perSecond int) (stop func()) {
	const hands = 16 // number of concurrent commands: some wait long for an answer
	ctx, cancel := context.WithCancel(w.t.Context())
	var working sync.WaitGroup
	for i := range hands {
		c := &commander{w: w, random: rand.New(rand.NewPCG(w.random.Uint64(), uint64(i))), line: &line{url: w.v.AMQPURL()}} //nolint:gosec // small
		working.Add(1)
		go func() {
			defer working.Done()
			defer c.line.close()
			for tick := time.NewTicker(time.Second * hands / time.Duration(perSecond)); ; {
				select {
				case <-ctx.Done():
					tick.Stop()
					return
				case <-tick.C:
					c.n++
					c.one(fmt.Sprintf("command-%d-%04d", i, c.n))
				}
			}
		}()
	}
	return func() {
		cancel()
		working.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.commanded = w.size() - w.row.jobs - len(queues)
	}
}

// far is when most of its jobs are due, so that they only arrive after a command. No clock is set
// by that much.
const far = 10 * time.Hour

// one publishes a job and sends a command about it.
func (c *commander) one(jid string) {
	stream := []string{wire.ScheduledJobs, wire.Retries}[c.random.IntN(2)]
	due := time.Now().Add(far)
	if c.random.IntN(4) == 0 { // it may be fired at this moment
		due = time.Now().Add(time.Duration(c.random.IntN(1000)) * time.Millisecond)
	}
	entry := c.w.entry(jid, stream, queues[c.random.IntN(len(queues))], due, unknown)
	if !c.line.publish(stream, entry) {
		return // it may exist or not
	}
	c.w.set(jid, stays, "")
	if time.Until(due) < time.Hour {
		c.w.set(jid, comes, "")
	}
	early := wire.CommandTrigger
	if stream == wire.Retries {
		early = wire.CommandRetry
	}
	switch verb := []string{wire.CommandDelete, early, wire.CommandKill}[c.random.IntN(3)]; c.give(jid, stream, verb) {
	case dies:
		if c.random.IntN(2) == 0 {
			c.give(jid, wire.DeadJobs, wire.CommandRetry)
		}
	case comes, stays, deleted, unknown:
	}
}

// patient is how long an unanswered command is repeated.
const patient = 90 * time.Second

// give repeats a command until it is answered, and records what must happen to the job now.
func (c *commander) give(jid, stream, verb string) fate {
	c.w.set(jid, unknown, "")
	id := fmt.Sprintf("%s-%s-%s", jid, verb, stream)
	rest := c.random.IntN(2) == 0
	var r wire.Reply
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); c.w.pause(200 * time.Millisecond) {
		if rest {
			r = c.rest(jid, stream, verb)
		} else {
			r = c.line.ask(wire.Command{ID: id, Command: verb, Stream: stream, JID: jid})
		}
		if f, sure := means(verb, r); sure {
			c.w.set(jid, f, answered(stream, verb, r, rest))
			return f
		}
	}
	c.w.t.Logf("%s: no leader would %s it in %s: %d %s %+v", jid, verb, stream, r.Status, r.Reason, r.Happened)
	c.w.set(jid, unknown, answered(stream, verb, wire.Reply{Status: wire.StatusUnknown}, rest))
	return unknown
}

func answered(stream, verb string, r wire.Reply, rest bool) string {
	text := fmt.Sprintf("%s %s: %d", verb, stream, r.Status)
	if r.Happened != nil {
		text += " it was " + r.Happened.What
	}
	if rest {
		text += " (REST)"
	}
	return text
}

// means returns what an answer says about a job. If sure is false, the command must be repeated. An
// entry that is unknown now may be known a moment later.
func means(verb string, r wire.Reply) (f fate, sure bool) {
	what := verb
	switch {
	case r.Status == wire.StatusDone:
	case r.Status == wire.StatusNotFound && r.Happened != nil:
		what = r.Happened.What
	default:
		return unknown, false
	}
	switch {
	case what == wire.CommandDelete || what == wire.TypeDeleted:
		return deleted, true
	case what == wire.CommandKill || what == wire.TypeKilled || what == wire.OpBuried:
		return dies, true
	case slices.Contains([]string{wire.CommandTrigger, wire.CommandRetry, wire.OpFired, wire.OpTriggered, wire.OpRetried, wire.OpRefired}, what):
		return comes, true
	}
	return unknown, false
}

// rest sends a command through the REST API of any sidecar.
func (c *commander) rest(jid, stream, verb string) wire.Reply {
	set := map[string]string{wire.ScheduledJobs: "scheduled-jobs", wire.Retries: "retries", wire.DeadJobs: "dead-jobs"}[stream]
	method, address := "POST", "/api/"+set+"/"+jid+"/"+verb
	if verb == wire.CommandDelete {
		method, address = "DELETE", "/api/"+set+"/"+jid
	}
	p := c.w.living(c.random.IntN(100))
	if p == nil {
		return wire.Reply{Status: wire.StatusUnavailable}
	}
	status, body, err := p.Do(method, address, "")
	if err != nil {
		return wire.Reply{Status: wire.StatusUnknown}
	}
	r := wire.Reply{}
	_ = json.Unmarshal(body, &r) // a 204 has no body
	r.Status = status
	return r
}
