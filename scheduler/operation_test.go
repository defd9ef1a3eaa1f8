package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func (s *sidecar) operates(t *testing.T, status int, id string, op wire.Operation) {
	t.Helper()
	reply := s.ask(t, wire.Command{ID: id, Command: wire.CommandOperate, Bulk: &op})
	require.Equal(t, status, reply.Status, "%+v", reply)
}

func (s *sidecar) ends(t *testing.T, id string) (op wire.Operation) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		var known bool
		op, known = s.entries.Operation(id)
		return known && op.State != wire.OperationRunning
	}, "operation %s ends", id)
	return op
}

// An operation survives its leader: the next one continues at the position in the journal, and does
// nothing twice.
func TestOperationSurvivesFailover(t *testing.T) {
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	jids := names("many", 3000)
	first := start(t, v, options{identity: "a"}).leads(t)
	schedule(t, v, time.Now().Add(time.Hour), "q", jids...)
	schedule(t, v, time.Now().Add(time.Hour), "other", "not meant")
	first.reads(t, wire.ScheduledJobs, "not meant") // the last one: counts show a batch a moment before it is written
	require.EqualValues(t, 3001, first.entries.Total(wire.ScheduledJobs))
	asOf, err := first.entries.Position(wire.ScheduledJobs)
	require.NoError(t, err)
	schedule(t, v, time.Now().Add(time.Hour), "q", "came later")
	few, all := int64(2900), int64(3000)
	first.operates(t, 412, "drifted", wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, Filter: &wire.Filter{Queue: "q"}, AsOf: &asOf, Expected: &few})
	first.operates(t, 202, "run", wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, Filter: &wire.Filter{Queue: "q"}, AsOf: &asOf,
		Expected: &all, Rate: 1500})
	brokertest.Eventually(t, func() bool { return w.distinct() > 500 }, "it is under way")
	first.stop()

	second := start(t, v, options{identity: "b"}).leads(t)
	op := second.ends(t, "run")
	require.Equal(t, []any{wire.OperationDone, int64(3000), int64(3000), int64(0)}, []any{op.State, op.Total, op.Done, op.Failed})
	w.gets(t, jids...)
	require.EqualValues(t, 2, second.entries.Total(wire.ScheduledJobs), "no other entry was changed")

	second.operates(t, 202, "gone", wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, JIDs: []string{"not meant", "never there"}})
	op = second.ends(t, "gone")
	require.Equal(t, []int64{1, 1}, []int64{op.Done, op.Failed})
	second.operates(t, 202, "slow", wire.Operation{Action: wire.CommandKill, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}, Rate: 0.001})
	require.Equal(t, 204, second.ask(t, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: "slow"}}).Status)
	require.Equal(t, wire.OperationCancelled, second.ends(t, "slow").State)
	require.Equal(t, 404, second.ask(t, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: "never"}}).Status)
}
