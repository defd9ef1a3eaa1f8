package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

type moveTypeCmd struct {
	queueActionCmd

	output.Confirm
	dryRunFlag

	Type    string        `arg:"" enum:"classic,quorum" help:"classic or quorum. quorum needs RabbitMQ 4.3 or later."`
	Timeout time.Duration `default:"1m" placeholder:"DURATION" help:"How long to wait for jobs that workers have not acknowledged, at least 20s (${default}). After that the queue is left as it was."`
}

const (
	followMoveEvery = time.Second
	leaderlessFor   = time.Minute // how long a move is followed while no leader answers
)

// Run says what a move does, or moves the queue and follows that to its end.
func (c *moveTypeCmd) Run(ctx context.Context, out output.Streams) error {
	id := rand.Text()
	m, err := c.post(ctx, id, !c.Yes || c.DryRun)
	if err != nil {
		return err
	}
	if !c.Yes || c.DryRun {
		if err := printPlan(out.Err, m); err != nil || c.DryRun || m.From == m.To {
			return err
		}
		if err := c.Ask(out, "Make it a %s queue? Its jobs wait meanwhile, at least 12 seconds.", m.To); err != nil {
			return err
		}
		if m, err = c.post(ctx, id, false); err != nil {
			return err
		}
	}
	return c.follow(ctx, out, id, m)
}

func (c *moveTypeCmd) post(ctx context.Context, id string, dryRun bool) (*answer.TypeMove, error) {
	request := fields{"type": c.Type, "timeout_s": c.Timeout.Seconds(), "id": id, "reason": c.Reason, "dry_run": dryRun}
	return send[answer.TypeMove](ctx, &c.apiFlags, http.MethodPost, c.path()+"/move-type", request.JSON())
}

// follow repeats the request until the move has ended. If there is another leader meanwhile, it
// begins the move again.
func (c *moveTypeCmd) follow(ctx context.Context, out output.Streams, id string, m *answer.TypeMove) error {
	step, heard := "", time.Now()
	for m.State != wire.MoveDone {
		id = cmp.Or(m.ID, id) // a move that ran already has another id
		if m.Step != step {
			step = m.Step
			if _, err := fmt.Fprintf(out.Err, "%s: %s\n", c.Queue, step); err != nil {
				return err
			}
		}
		if err := pause.For(ctx, followMoveEvery); err != nil {
			return err
		}
		next, err := c.post(ctx, id, false)
		var refusal *apiclient.Error
		switch {
		case err == nil:
			m, heard = next, time.Now()
		case !errors.As(err, &refusal) || refusal.Status < http.StatusInternalServerError || time.Since(heard) > leaderlessFor:
			return err
		}
	}
	return c.Printer(out).Done(fields{"queue": c.Queue, "done": "moved", "type": m.To, "jobs": m.Moved},
		"queue %q is a %s queue now, %s went through %s", c.Queue, m.To, wire.Counted(m.Moved, "job"), wire.Gated)
}

// printPlan prints what a move would do.
func printPlan(w io.Writer, m *answer.TypeMove) error {
	if m.From == m.To {
		_, err := fmt.Fprintf(w, "queue %q is a %s queue already\n", m.Queue, m.To)
		return err
	}
	lines := []string{
		strings.TrimSuffix(fmt.Sprintf("queue %q: a %s queue on %s", m.Queue, m.From, m.Node), " on "),
		fmt.Sprintf("ready jobs:     %d, which are moved to the new queue", m.Ready),
		fmt.Sprintf("unacknowledged: %d, which are waited for", m.Unacked),
		fmt.Sprintf("consumers:      %d, which are asked to stop; those that do not listen to %s lose the queue when it is replaced", m.Consumers, wire.Control),
	}
	for _, identity := range m.Processes {
		lines = append(lines, "worker:         "+identity)
	}
	lines = append(lines, "new arguments:  "+argumentList(m.Arguments))
	if len(m.Dropped) > 0 {
		lines = append(lines, "no longer:      "+argumentList(m.Dropped))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func argumentList(all map[string]any) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, fmt.Sprintf("%s=%v", name, all[name]))
	}
	return strings.Join(list, " ")
}
