package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// bulk begins operations on its own jobs, undoes some of them, and retries the entries that came
// back. The last action decides whether an entry exists, and each job arrives once.
type bulk struct {
	w      *world
	broken *faults

	mu            sync.Mutex
	begun, undone int
}

const inBulk = 300 // jobs of one operation

func (b *bulk) work(ctx context.Context, c *caller, hand int) {
	for n := 0; ctx.Err() == nil; n++ {
		b.round(c, fmt.Sprintf("Bulk-%d-%d", hand, n))
	}
}

// round publishes retries of a class and deletes or kills them. Most often it then undoes that, and
// retries them.
func (b *bulk) round(c *caller, class string) {
	jids := make([]string, inBulk)
	all := make([]amqp.Publishing, inBulk)
	for i := range all {
		jids[i] = fmt.Sprintf("%s-%03d", class, i)
		all[i] = b.w.entry(jids[i], wire.Retries, queues[i%len(queues)], time.Now().Add(far), stays)
		ofClass(&all[i], class)
	}
	b.w.publish(wire.Retries, all...)
	if !b.pending(c, class, inBulk) {
		return
	}
	action, becomes := wire.CommandDelete, deleted
	if c.chance(50) {
		action, becomes = wire.CommandKill, dies
	}
	id, ok := b.operate(c, class, action)
	if !ok || !b.await(c, id, becomes, jids) || c.chance(30) {
		return
	}
	if !b.undo(c, id, jids) || !b.pending(c, class, inBulk) {
		return
	}
	if id, ok = b.operate(c, class, wire.CommandRetry); ok {
		b.await(c, id, comes, jids)
	}
}

func ofClass(m *amqp.Publishing, class string) {
	m.Body = []byte(strings.Replace(string(m.Body), `"class":"C"`, `"class":"`+class+`"`, 1))
}

func (b *bulk) mark(jids []string, f fate, answer string) {
	for _, jid := range jids {
		b.w.set(jid, f, answer)
	}
}

// pending waits until n jobs of a class are known.
func (b *bulk) pending(c *caller, class string, n int) bool {
	var list struct {
		Count int `json:"filtered_count"`
	}
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); b.w.pause(100 * time.Millisecond) {
		if c.read("/api/retries?page=1&page_size=1&class="+class, &list) && list.Count == n {
			return true
		}
	}
	b.broken.note("%d of %s are pending, not %d", list.Count, class, n)
	return false
}

type operation struct {
	ID, State, Action, Reason, Undoes string
	Done, Failed                      int
	Skipped                           int
}

// operate begins an operation. If a call is not answered, the operation may have begun: the reason
// identifies it.
func (b *bulk) operate(c *caller, class, action string) (id string, ok bool) {
	b.mu.Lock()
	b.begun++
	b.mu.Unlock()
	reason := action + " " + class
	body := fmt.Sprintf(`{"action":%q,"set":"retries","filter":{"class":%q},"expected_count":%d,"rate":%d,"reason":%q}`, action, class, inBulk, inBulk/2, reason)
	return b.begin(c, "/api/operations", body, func(o *operation) bool { return o.Reason == reason })
}

// begin repeats a request for an operation until it has begun. On a busy machine with kills, there
// may be no leader at any of the moments when it asks.
func (b *bulk) begin(c *caller, path, body string, is func(*operation) bool) (id string, ok bool) {
	status, answer := 0, []byte(nil)
	for deadline := time.Now().Add(patient); time.Now().Before(deadline) || b.w.undisturbed() < patient; {
		var begun operation
		status, answer = c.try(http.MethodPost, path, body)
		switch {
		case status == http.StatusAccepted && json.Unmarshal(answer, &begun) == nil:
			return begun.ID, true
		case !unsure(status) && status != http.StatusConflict && status != http.StatusPreconditionFailed:
			b.broken.note("%s %s is answered %d %s", path, body, status, answer)
			return "", false
		}
		// Longer than a command may take: an operation that has not begun by then never will.
		for look := time.Now().Add(2 * answerWithin); time.Now().Before(look); b.w.pause(200 * time.Millisecond) {
			var all []operation
			if c.read("/api/operations", &all) {
				for i := range all {
					if is(&all[i]) {
						return all[i].ID, true
					}
				}
			}
		}
	}
	b.broken.note("%s %s does not begin: %d %s", path, body, status, answer)
	return "", false
}

// await waits until an operation is done. An undo reads the journal first. That may take longer
// than a leader lives while leaders are killed.
func (b *bulk) await(c *caller, id string, becomes fate, jids []string) bool {
	b.mark(jids, unknown, "")
	var o operation
	done := 0
	for deadline := time.Now().Add(patient); time.Now().Before(deadline) || b.w.undisturbed() < patient; b.w.pause(200 * time.Millisecond) {
		if c.read("/api/operations/"+id, &o) && o.State != wire.OperationRunning {
			break
		}
		if o.Done > done { // a large one may take long, as long as it progresses
			done, deadline = o.Done, time.Now().Add(patient)
		}
	}
	if o.State != wire.OperationDone || o.Done != len(jids) || o.Failed+o.Skipped > 0 {
		b.broken.note("the operation %s is %+v", id, o)
		return false
	}
	b.mark(jids, becomes, o.Action+" as an operation")
	return true
}

// undo undoes an operation.
func (b *bulk) undo(c *caller, id string, jids []string) bool {
	b.mu.Lock()
	b.undone++
	b.mu.Unlock()
	undoing, ok := b.begin(c, "/api/operations/"+id+"/undo", fmt.Sprintf(`{"rate":%d}`, inBulk/2), func(o *operation) bool { return o.Undoes == id })
	return ok && b.await(c, undoing, stays, jids)
}

func (b *bulk) String() string {
	return fmt.Sprintf("%d operations on %d jobs each, %d of them undone", b.begun, inBulk, b.undone)
}
