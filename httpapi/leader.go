package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	headerReason  = "X-Reason"
	maxReason     = 4096             // characters
	commandBudget = 10 * time.Second // for a command and its answer; asking has a shorter deadline
	readBackLimit = 2 * time.Second  // for this sidecar to read what the leader has read back
)

// leader is the sidecar that leads: it carries out commands.
type leader struct {
	ask  func(ctx context.Context, c wire.Command) wire.Reply
	view *view.View
}

func (l *leader) do(in *problem.Request, cmd wire.Command) error {
	if _, p := l.send(in, sign(in, cmd)); p != nil {
		return p
	}
	return nil
}

// send sends a signed command, unless the request could not be read.
func (l *leader) send(in *problem.Request, cmd wire.Command) (wire.Reply, *problem.Problem) {
	if in.Err() != nil {
		return wire.Reply{}, problem.From(in.Err())
	}
	problem.InfoOf(in.Request()).Command = []any{"command", cmd.Command, "command_id", cmd.ID, "stream", cmd.Stream, "jid", problem.Shorten(cmd.JID)}
	ctx, cancel := context.WithTimeout(in.Request().Context(), commandBudget)
	defer cancel()
	reply := l.ask(ctx, cmd)
	return reply, problem.FromReply(reply)
}

// note journals who does something without the leader, and why, before it is done: the journal has
// all that was done. After a crash it may also have what was not.
func (l *leader) note(in *problem.Request, n wire.Noted, reason string) error {
	switch _, p := l.send(in, sign(in, wire.Command{Command: wire.CommandNote, Noted: &n, Reason: reason})); {
	case p == nil:
		return nil
	case in.Err() != nil:
		return p
	case p.Status == http.StatusBadRequest:
		return problem.Unavailable(errors.New(p.Reason), "the leader cannot journal this, and nothing was done: it may be of an older version")
	case p.Status == http.StatusGatewayTimeout:
		return problem.Unavailable(errors.New(p.Reason), "nothing was done: the leader did not say that it has journaled this")
	default:
		return p
	}
}

// readBack calls done after each change of the view, until it reports true or the limit has passed.
func (l *leader) readBack(ctx context.Context, limit time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		changed := l.view.Changed() // taken first, so that no change is missed
		if done() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// sign adds the user, the reason and a new id, which makes it safe to send the command again.
func sign(in *problem.Request, cmd wire.Command) wire.Command {
	cmd.Reason = checkReason(in, cmd.Reason)
	cmd.ID, cmd.Actor = rand.Text(), auth.PrincipalOf(in.Request()).Name
	return cmd
}

// readReason returns the reason in the body, where that has nothing else.
func readReason(in *problem.Request) string {
	var body struct {
		Reason string `json:"reason"`
	}
	in.Body(&body)
	return body.Reason
}

// checkReason returns the reason in the header, else the one in the body.
func checkReason(in *problem.Request, inBody string) string {
	inHeader := headerText(in.Request().Header.Get(headerReason))
	if max(utf8.RuneCountInString(inBody), utf8.RuneCountInString(inHeader)) > maxReason {
		in.BadRequest("the reason must have at most %d characters", maxReason)
	}
	return cmp.Or(inHeader, inBody)
}

// headerText decodes a header: UTF-8, or ISO 8859-1, as headers were before.
func headerText(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	var b strings.Builder
	for _, c := range []byte(value) {
		b.WriteRune(rune(c))
	}
	return b.String()
}
