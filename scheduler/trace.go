package scheduler

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// trace logs, at the level debug, each job that the leader publishes, and how the broker answers.
// With what the view logs when it reads records, the lines of one jid are its history.
type trace struct {
	ledger.Port
	log  *slog.Logger
	jids map[uint64]string // of fires and burials that are not answered yet, by tag
}

// newTrace returns a trace before a port; nil if the log has no debug lines.
func newTrace(ctx context.Context, to ledger.Port, log *slog.Logger) *trace {
	if !log.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	return &trace{Port: to, log: log, jids: map[uint64]string{}}
}

// Publish implements ledger.Port.
func (t *trace) Publish(m wire.Message) (uint64, error) {
	tag, err := t.Port.Publish(m)
	if d, ok := wire.DispatchOf(m.Headers); ok && err == nil {
		t.jids[tag] = d.JIDTag
		t.log.Debug("scheduler: published", "jid", d.JIDTag, "op", d.Op, "key", m.Key, "entry", fmt.Sprintf("%s@%d", d.Stream, d.Offset),
			"epoch", d.Epoch, "seq", d.Seq)
	}
	return tag, err
}

// answered logs the broker's answer to a fire or burial. A nil trace logs nothing.
func (t *trace) answered(c broker.Confirm) {
	if t == nil {
		return
	}
	jid, ok := t.jids[c.Tag]
	if !ok {
		return
	}
	delete(t.jids, c.Tag)
	t.log.Debug("scheduler: answered", "jid", jid, "confirmed", c.Ack)
}
