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

	"github.com/labstack/echo/v4"

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

// do sends a command, and answers that it was carried out.
func (l *leader) do(c echo.Context, cmd wire.Command) error {
	cmd, err := sign(c, cmd)
	if err != nil {
		return err
	}
	if _, p := l.send(c, cmd); p != nil {
		return p
	}
	return c.NoContent(http.StatusNoContent)
}

// send sends a signed command and returns the leader's reply.
func (l *leader) send(c echo.Context, cmd wire.Command) (wire.Reply, *problem.Problem) {
	problem.InfoOf(c.Request()).Command = []any{"command", cmd.Command, "command_id", cmd.ID, "stream", cmd.Stream, "jid", problem.Shorten(cmd.JID)}
	ctx, cancel := context.WithTimeout(c.Request().Context(), commandBudget)
	defer cancel()
	reply := l.ask(ctx, cmd)
	return reply, problem.FromReply(reply)
}

// note journals who does something without the leader, and why, before it is done. Without a leader
// it is not done. After a crash, or when the broker refuses, the journal may have what was not done;
// it always has what was done.
func (l *leader) note(c echo.Context, n wire.Noted, reason string) error {
	cmd, err := sign(c, wire.Command{Command: wire.CommandNote, Noted: &n, Reason: reason})
	if err != nil {
		return err
	}
	switch _, p := l.send(c, cmd); {
	case p == nil:
		return nil
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
func sign(c echo.Context, cmd wire.Command) (wire.Command, error) {
	var err error
	if cmd.Reason, err = checkReason(c, cmd.Reason); err != nil {
		return cmd, err
	}
	cmd.ID, cmd.Actor = rand.Text(), auth.PrincipalOf(c.Request()).Name
	return cmd, nil
}

// readReason returns the reason in the body, where that has nothing else.
func readReason(c echo.Context) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	err := problem.ReadBody(c, &body)
	return body.Reason, err
}

// readCheckedReason returns the reason of a request that may end before a command is signed.
func readCheckedReason(c echo.Context) (string, error) {
	reason, err := readReason(c)
	if err != nil {
		return "", err
	}
	return checkReason(c, reason)
}

// checkReason returns the reason in the header, else the one in the body.
func checkReason(c echo.Context, inBody string) (string, error) {
	inHeader := headerText(c.Request().Header.Get(headerReason))
	if max(utf8.RuneCountInString(inBody), utf8.RuneCountInString(inHeader)) > maxReason {
		return "", problem.BadRequest("the reason must have at most %d characters", maxReason)
	}
	return cmp.Or(inHeader, inBody), nil
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
