package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	headerReason  = "X-Reason"
	maxReason     = 4096             // characters
	commandBudget = 10 * time.Second // for a command and its answer; asking has a deadline of its own, below this
)

// command asks the leader to do something to an entry.
func (s *Server) command(verb, stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		return s.ask(c, wire.Command{Command: verb, Stream: stream, JID: jid, Offset: offset, Reason: reason})
	}
}

// readReason gives why something is asked for, where the body says nothing else.
func readReason(c echo.Context) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	err := problem.ReadBody(c, &body)
	return body.Reason, err
}

// release lets the entries fire that are held since the journal lost records, or deletes those of them that are due.
func (s *Server) release(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	var body struct {
		Discard bool   `json:"discard"`
		Reason  string `json:"reason"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	cmd := wire.Command{Command: wire.CommandRelease, Reason: body.Reason}
	if body.Discard {
		cmd.Command = wire.CommandDiscard
	}
	return s.ask(c, cmd)
}

// ask sends a command and answers with its reply.
func (s *Server) ask(c echo.Context, cmd wire.Command) error {
	cmd, err := sign(c, cmd)
	if err != nil {
		return err
	}
	if p := s.send(c, cmd); p != nil {
		return p
	}
	return c.NoContent(http.StatusNoContent)
}

// sign adds who asks and why, and a new id: it makes repeating safe for whoever passes the command on.
func sign(c echo.Context, cmd wire.Command) (wire.Command, error) {
	var err error
	if cmd.Reason, err = reasonGiven(c, cmd.Reason); err != nil {
		return cmd, err
	}
	cmd.ID, cmd.Actor = rand.Text(), auth.PrincipalOf(c.Request()).Name
	return cmd, nil
}

// reasonGiven is why something is asked for: what the header says, else the body. It is checked also where nothing comes to be done.
func reasonGiven(c echo.Context, inBody string) (string, error) {
	inHeader := headerText(c.Request().Header.Get(headerReason))
	if max(utf8.RuneCountInString(inBody), utf8.RuneCountInString(inHeader)) > maxReason {
		return "", problem.BadRequest("the reason must have at most %d characters", maxReason)
	}
	return cmp.Or(inHeader, inBody), nil
}

// headerText reads a header's value: UTF-8, or what headers were before that, ISO 8859-1.
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

// send has the leader carry out a command.
func (s *Server) send(c echo.Context, cmd wire.Command) *problem.Problem {
	_, p := s.sendFor(c, cmd)
	return p
}

// sendFor has the leader carry out a command, for what it answers.
func (s *Server) sendFor(c echo.Context, cmd wire.Command) (wire.Reply, *problem.Problem) {
	problem.InfoOf(c.Request()).Command = []any{"command", cmd.Command, "command_id", cmd.ID, "stream", cmd.Stream, "jid", problem.Shorten(cmd.JID)}
	ctx, cancel := context.WithTimeout(c.Request().Context(), commandBudget)
	defer cancel()
	reply := s.cfg.Ask(ctx, cmd)
	return reply, problem.FromReply(reply)
}
