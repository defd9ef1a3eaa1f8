package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxEnqueued   = 10_000 // jobs in one request
	enqueueAtOnce = 256    // of them, published and not confirmed yet
	headerOnce    = "Idempotency-Key"
)

// enqueued is what became of one job.
type enqueued struct {
	JID    string `json:"jid,omitempty"`
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// enqueue publishes a job as a producer does, or an array of them.
func (s *Server) enqueue(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	if raw = bytes.TrimSpace(raw); !utf8.Valid(raw) || !json.Valid(raw) {
		return problem.BadRequest("the body is not valid JSON")
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), commandBudget)
	defer cancel()
	if given := c.Request().Header.Values(headerOnce); len(given) > 0 && given[0] == "" { // somebody wanted to be sure, and would not be
		return problem.BadRequest("the header %s is empty: leave it out", headerOnce)
	}
	switch raw[0] {
	case '[':
		if c.Request().Header.Get(headerOnce) != "" {
			return problem.BadRequest("the header %s is for a single job: in an array each has a member %s", headerOnce, memberOnce)
		}
		return s.enqueueAll(ctx, c, raw)
	case '{':
		jid, err := s.enqueueKeyed(ctx, raw, c.Request().Header.Get(headerOnce), auth.PrincipalOf(c.Request()).Name)
		if err != nil {
			return err
		}
		c.Response().Header().Set(echo.HeaderLocation, s.cfg.Prefix+"/api/jobs/"+url.PathEscape(jid))
		return c.JSON(http.StatusCreated, enqueued{JID: jid})
	}
	return problem.BadRequest("the body must be a job, or an array of jobs")
}

// enqueueAll publishes them all at once; each has an outcome of its own.
func (s *Server) enqueueAll(ctx context.Context, c echo.Context, raw []byte) error {
	var jobs []json.RawMessage
	if err := json.Unmarshal(raw, &jobs); err != nil {
		return problem.BadRequest("the body is not valid: %s", err)
	}
	if len(jobs) > maxEnqueued {
		return problem.BadRequest("%d jobs are too many: at most %d go into one request", len(jobs), maxEnqueued)
	}
	outcomes, actor := make([]enqueued, len(jobs)), auth.PrincipalOf(c.Request()).Name
	var g errgroup.Group
	g.SetLimit(enqueueAtOnce)
	for i, job := range jobs {
		g.Go(func() error {
			raw, key, err := keyIn(job)
			jid := ""
			if err == nil {
				jid, err = s.enqueueKeyed(ctx, raw, key, actor)
			}
			if outcomes[i].JID = jid; err != nil {
				p := problem.From(err)
				outcomes[i] = enqueued{Error: p.Code, Reason: p.Reason}
			}
			return nil
		})
	}
	_ = g.Wait() // each has its outcome
	return c.JSON(http.StatusOK, outcomes)
}

func (s *Server) enqueueOne(ctx context.Context, raw []byte) (jid string, err error) {
	m, err := s.jobMessage(raw)
	if err != nil {
		return "", err
	}
	switch err := s.cfg.Publish(ctx, m.Message); {
	case errors.Is(err, broker.ErrUnpublishable):
		return "", problem.BadRequest("no broker can take this job: %s", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, broker.ErrLost):
		p := problem.New(http.StatusGatewayTimeout, "the broker did not confirm the job in time: it may have it, and a repeat may double it")
		p.Cause = err
		return "", p
	case err != nil:
		return "", problem.Unavailable(err, "the broker did not take the job")
	}
	return m.jid, nil
}

type jobMessage struct {
	wire.Message
	jid string
}

// jobMessage makes a message of a job as a client wrote it. What Millrace adds (jid, enqueued_at) stands in front; the rest stays byte
// for byte. A job with a time goes to the scheduled ones.
func (s *Server) jobMessage(raw []byte) (m jobMessage, err error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' {
		return m, problem.BadRequest("a job must be a JSON object")
	}
	at, timed, err := timeOf(raw)
	if err != nil {
		return m, err
	}
	now := wire.Seconds(s.cfg.Now())
	var front []byte
	if m.jid = gjson.GetBytes(raw, "jid").String(); !gjson.GetBytes(raw, "jid").Exists() {
		m.jid = newJID()
		front = fmt.Appendf(front, `"jid":%s,`, quote(m.jid))
	}
	if !timed && !gjson.GetBytes(raw, "enqueued_at").Exists() {
		front = fmt.Appendf(front, `"enqueued_at":%s,`, seconds(now))
	}
	body := inFront(raw, front)
	job, err := wire.ParseJob(body)
	if err != nil {
		return m, problem.BadRequest("this is no job: %s", err)
	}
	if args := gjson.GetBytes(raw, "args"); args.Exists() && args.Type != gjson.Null && !args.IsArray() {
		return m, problem.BadRequest("member args must be an array")
	}
	if m.jid = job.JID; m.jid == "" {
		return m, problem.BadRequest("the job's jid is empty: leave it out, and it gets one")
	}
	m.Message = wire.Message{
		Exchange: wire.ExchangeRoute, Key: job.Queue, MessageID: wire.Property(job.JID), Type: wire.Property(job.Class), Timestamp: s.cfg.Now(),
		Priority: job.Priority, Body: body,
	}
	if !timed {
		return m, nil
	}
	m.Exchange, m.Key, m.Priority = "", wire.ScheduledJobs, 0
	m.Body = wire.ScheduledJob(job.JID, at, body)
	if _, err := wire.ParseEntry(wire.ScheduledJobs, 0, m.Body); err != nil {
		return m, problem.BadRequest("this is no job: %s", err)
	}
	return m, nil
}

// memberAt is when a job is to run. It stays in the job, as a worker may want to know.
const memberAt = "at"

func timeOf(job []byte) (at float64, given bool, err error) {
	v := gjson.GetBytes(job, memberAt)
	if !v.Exists() || v.Type == gjson.Null {
		return 0, false, nil
	}
	var t time.Time
	switch v.Type {
	case gjson.String:
		t, err = time.Parse(time.RFC3339Nano, v.String())
	case gjson.Number:
		t, err = problem.Params{memberAt: v.Raw}.Time(memberAt, time.Time{})
	default:
		err = errTime
	}
	if err != nil {
		return 0, false, problem.BadRequest("member at must be seconds since 1970 or a time like 2026-01-31T12:00:00Z")
	}
	return wire.Seconds(t), true, nil
}

var errTime = errors.New("no time")

func seconds(at float64) string { return strconv.FormatFloat(at, 'f', -1, 64) }

// inFront puts members, each with a comma behind it, in front of an object's own.
func inFront(object, members []byte) []byte {
	if len(members) == 0 {
		return object
	}
	begin := bytes.IndexByte(object, '{') + 1
	rest := bytes.TrimLeft(object[begin:], " \t\r\n")
	if rest[0] == '}' {
		members = members[:len(members)-1]
	}
	return bytes.Join([][]byte{object[:begin], members, object[begin:]}, nil)
}

func newJID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
