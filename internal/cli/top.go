package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/pause"
)

type topCmd struct {
	flags.Client

	Every time.Duration `placeholder:"DURATION" default:"2s" help:"Time between two refreshes (${default})."`
	Count int           `short:"n" placeholder:"N" help:"End after this many refreshes. Without it, the command runs until it is interrupted."`
}

const (
	fastestTop  = 100 * time.Millisecond
	topQueues   = 15 // rows, on a screen that has the room
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	eraseRest   = "\x1b[J"
)

// Run shows what is going on until ctx ends. On a terminal each refresh replaces the one before.
func (c *topCmd) Run(ctx context.Context, out output.Streams) error {
	if c.Every < fastestTop {
		return usage.Errorf("invalid --every %s: use at least %s", c.Every, fastestTop)
	}
	t := &top{api: c.APIClient(), out: out}
	screen, err := t.screen(ctx, time.Now())
	if err != nil {
		return err
	}
	if output.IsTerminal(out.Out) {
		fmt.Fprint(out.Out, enterScreen)
		defer fmt.Fprint(out.Out, leaveScreen)
	}
	for n := 1; ; n++ {
		if err := t.show(screen); err != nil {
			return err
		}
		if n == c.Count || pause.For(ctx, c.Every) != nil || ctx.Err() != nil {
			return nil
		}
		if screen, err = t.screen(ctx, time.Now()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			screen = []byte(err.Error() + "\n")
		}
	}
}

// top is a screen that is drawn again and again.
type top struct {
	api    *apiclient.Client
	out    output.Streams
	before overview // of the screen before
	at     time.Time
}

// show writes a screen in place of the one before or, without a terminal, below it.
func (t *top) show(screen []byte) error {
	if !output.IsTerminal(t.out.Out) {
		_, err := t.out.Out.Write(append(screen, '\n'))
		return err
	}
	lines := strings.Split(strings.TrimRight(string(screen), "\n"), "\n")
	if _, height := t.out.Size(); height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	_, err := io.WriteString(t.out.Out, toTop+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K"+eraseRest)
	return err
}

// screen asks for everything and lays it out.
func (t *top) screen(ctx context.Context, now time.Time) ([]byte, error) {
	o, err := apiclient.Get[overview](ctx, t.api, apiclient.OverviewPath, nil)
	if err != nil {
		return nil, err
	}
	attention, err := apiclient.Get[answer.Attention](ctx, t.api, attentionPath, nil)
	if err != nil {
		return nil, err
	}
	all := url.Values{"page": {"1"}, "page_size": {"500"}}
	queues, err := apiclient.Get[answer.Page[answer.Queue]](ctx, t.api, queuesPath, all)
	if err != nil {
		return nil, err
	}
	processes, err := apiclient.Get[answer.Page[answer.Process]](ctx, t.api, processesPath, all)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	p := output.NewPrinter(&b, t.out, now)
	done, failed := t.rates(o, now)
	_ = p.Note("millrace %s, %s   %s", o.Version, o.broker(), now.Format(humantime.WithZone))
	_ = p.Note("scheduled %d   retries %d   dead %d   %s   processed %s   failed %s\n", o.Sets[apiclient.Scheduled].Total, o.Sets[apiclient.Retries].Total, o.Sets[apiclient.Dead].Total,
		o.processes(), done, failed)
	_ = printProblems(p, attention, "nothing needs attention") // into memory
	slices.SortStableFunc(queues.Items, func(a, b answer.Queue) int {
		return cmp.Or(cmp.Compare(b.Ready, a.Ready), strings.Compare(a.Name, b.Name))
	})
	_ = p.Note("")
	_ = p.Table(queueRows.table(queues.Items[:min(len(queues.Items), topQueues)]))
	if hidden := len(queues.Items) - topQueues; hidden > 0 {
		_ = p.Note("and %d more queues", hidden)
	}
	_ = p.Note("")
	_ = p.Table(processRows.table(processes.Items))
	return b.Bytes(), nil
}

// rates returns how many attempts a second succeeded and failed since the screen before.
func (t *top) rates(o *overview, now time.Time) (done, failed string) {
	done, failed = "-", "-"
	if seconds := now.Sub(t.at).Seconds(); !t.at.IsZero() && seconds > 0 {
		perSecond := func(n int64) string { return fmt.Sprintf("%.1f/s", float64(max(n, 0))/seconds) }
		done = perSecond(o.Jobs.Processed - t.before.Jobs.Processed)
		failed = perSecond(o.Jobs.Failed - t.before.Jobs.Failed)
	}
	t.before, t.at = *o, now
	return done, failed
}
