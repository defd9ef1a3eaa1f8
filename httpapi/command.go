package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

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
	err := readBody(c, &body)
	return body.Reason, err
}

// release lets the entries fire that are held since the journal lost records, or deletes those of them that are due.
func (s *Server) release(c echo.Context) error {
	if _, err := parseParams(c.Request()); err != nil {
		return err
	}
	var body struct {
		Discard bool   `json:"discard"`
		Reason  string `json:"reason"`
	}
	if err := readBody(c, &body); err != nil {
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
	cmd.ID, cmd.Actor = rand.Text(), whoSent(c.Request()).name
	return cmd, nil
}

// reasonGiven is why something is asked for: what the header says, else the body. It is checked also where nothing comes to be done.
func reasonGiven(c echo.Context, inBody string) (string, error) {
	inHeader := headerText(c.Request().Header.Get(headerReason))
	if max(utf8.RuneCountInString(inBody), utf8.RuneCountInString(inHeader)) > maxReason {
		return "", badRequest("the reason must have at most %d characters", maxReason)
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
func (s *Server) send(c echo.Context, cmd wire.Command) *problem {
	_, p := s.sendFor(c, cmd)
	return p
}

// sendFor has the leader carry out a command, for what it answers.
func (s *Server) sendFor(c echo.Context, cmd wire.Command) (wire.Reply, *problem) {
	infoOf(c.Request()).command = []any{"command", cmd.Command, "command_id", cmd.ID, "stream", cmd.Stream, "jid", shorten(cmd.JID)}
	ctx, cancel := context.WithTimeout(c.Request().Context(), commandBudget)
	defer cancel()
	reply := s.cfg.Ask(ctx, cmd)
	return reply, problemIn(reply)
}

// problemIn is what a reply says went wrong, nil for a command that was carried out.
func problemIn(r wire.Reply) *problem {
	if r.Status >= 200 && r.Status < 300 {
		return nil
	}
	if codes[r.Status] == "" { // a reply that this build does not understand
		r.Status, r.Error = http.StatusGatewayTimeout, codeUnknown
	}
	p := newProblem(r.Status, "%s", r.Reason)
	if r.Error != "" {
		p.Code = r.Error
	}
	if p.Reason == "" {
		p.Reason = http.StatusText(p.Status)
	}
	p.Happened, p.Offsets = r.Happened, r.Offsets
	return p
}

// readBody reads a JSON object, if there is a body. Members that are not known are refused: a misspelt one would change what is done.
func readBody(c echo.Context, into any) error {
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return nil
	}
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' { // null would be taken for an object
		return badRequest("the body must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest("the body is not valid: %s", shorten(err.Error()))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("the body is not valid: there is more behind the JSON object")
	}
	return nil
}
