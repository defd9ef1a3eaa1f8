package chaos

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// large is an operation on so many entries that several leaders die during it. It retries each
// entry once.
type large struct {
	*bulk
	jids   []string
	id     string
	middle int // kills while it was running
}

const inLarge = "Large" // class of its jobs

func (l *large) publish(jobs int) {
	l.jids = make([]string, jobs)
	all := make([]amqp.Publishing, jobs)
	for i := range all {
		l.jids[i] = fmt.Sprintf("large-%05d", i)
		all[i] = l.w.entry(l.jids[i], wire.Retries, queues[i%len(queues)], time.Now().Add(far), stays)
		ofClass(&all[i], inLarge)
	}
	l.w.publish(wire.Retries, all...)
}

// begin starts the operation at a rate at which it takes longer than the kills.
func (l *large) begin(c *caller, kills int) {
	l.w.t.Helper()
	require.True(l.w.t, l.pending(c, inLarge, len(l.jids)), "%v", l.broken.all)
	body := fmt.Sprintf(`{"action":"retry","set":"retries","filter":{"class":%q},"expected_count":%d,"rate":%d,"reason":%q}`, inLarge, len(l.jids), len(l.jids)/(3*kills), inLarge)
	id, ok := l.bulk.begin(c, "/api/operations", body, func(o *operation) bool { return o.Reason == inLarge })
	require.True(l.w.t, ok, "%v", l.broken.all)
	l.id = id
	l.mark(l.jids, unknown, "")
}

// killed counts a kill after which the operation was not finished.
func (l *large) killed(c *caller) {
	var o operation
	if c.read("/api/operations/"+l.id, &o) && o.State == wire.OperationRunning && o.Done > 0 {
		l.middle++
	}
}

func (l *large) end(c *caller) {
	l.await(c, l.id, comes, l.jids)
	l.w.must(l.middle > 0, "no kill fell in the middle of the large operation")
}

func (l *large) String() string {
	return fmt.Sprintf("one operation on %d jobs, with %d kills in the middle of it", len(l.jids), l.middle)
}
