package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxEnqueued  = 10_000            // jobs in one request
	maxPublished = 256               // of them, not confirmed yet
	headerKey    = "Idempotency-Key" // of a single job
	memberKey    = "idempotency_key" // of a job in an array
	maxKeyedJob  = 1<<20 - 64<<10    // bytes of a job with a key, which is a command
)

// enqueueAPI publishes jobs as producers do.
type enqueueAPI struct {
	publish  func(ctx context.Context, m wire.Message) error
	ask      func(ctx context.Context, c wire.Command) wire.Reply
	await    func(jid string) (decided <-chan wire.Decision, stop func())
	governed *tracker.GovernedQueues
	prefix   string
	now      func() time.Time
}

// enqueue publishes a job, or an array of jobs.
func (e *enqueueAPI) enqueue(in *problem.Request) error {
	raw, key := readJob(in)
	if in.Err() != nil {
		return in.Err()
	}
	switch raw[0] {
	case '[':
		if key != "" {
			return problem.BadRequest("the header %s is for a single job: in an array each has a member %s", headerKey, memberKey)
		}
		ctx, cancel := context.WithTimeout(in.Request().Context(), commandBudget)
		defer cancel()
		outcomes, err := e.enqueueAll(ctx, raw, auth.PrincipalOf(in.Request()).Name)
		if err != nil {
			return err
		}
		return in.JSON(http.StatusOK, outcomes)
	case '{':
		return e.answerOne(in, raw, key)
	}
	return problem.BadRequest("the body must be a job, or an array of jobs")
}

// readJob reads a body of valid JSON, and the key of the job in it.
func readJob(in *problem.Request) (raw []byte, key string) {
	in.Query()
	raw = bytes.TrimSpace(in.Raw())
	if !utf8.Valid(raw) || !json.Valid(raw) {
		in.BadRequest("the body is not valid JSON")
	}
	key = in.Request().Header.Get(headerKey)
	if given := in.Request().Header.Values(headerKey); len(given) > 0 && given[0] == "" {
		in.BadRequest("the header %s is empty: leave it out", headerKey)
	}
	return raw, key
}

// answerOne publishes a job, and answers with its jid.
func (e *enqueueAPI) answerOne(in *problem.Request, raw []byte, key string) error {
	ctx, cancel := context.WithTimeout(in.Request().Context(), commandBudget)
	defer cancel()
	wait, stop := context.WithTimeout(ctx, decisionWait)
	defer stop()
	outcome, err := e.enqueueOne(ctx, wait, raw, key, auth.PrincipalOf(in.Request()).Name)
	if err != nil {
		return err
	}
	in.Response().Header().Set(echo.HeaderLocation, e.prefix+"/api/jobs/"+url.PathEscape(outcome.JID))
	return in.JSON(statusOf(&outcome), outcome)
}

// enqueueAll publishes jobs concurrently; each has an outcome of its own.
func (e *enqueueAPI) enqueueAll(ctx context.Context, raw []byte, actor string) ([]answer.Enqueued, error) {
	var jobs []json.RawMessage
	if err := json.Unmarshal(raw, &jobs); err != nil {
		return nil, problem.BadRequest("the body is not valid: %s", err)
	}
	if len(jobs) > maxEnqueued {
		return nil, problem.BadRequest("%d jobs are too many: at most %d go into one request", len(jobs), maxEnqueued)
	}
	outcomes := make([]answer.Enqueued, len(jobs))
	wait, stop := context.WithTimeout(ctx, decisionWait)
	defer stop()
	var g errgroup.Group
	g.SetLimit(maxPublished)
	for i, job := range jobs {
		g.Go(func() error {
			raw, key, err := cutKey(job)
			if err == nil {
				outcomes[i], err = e.enqueueOne(ctx, wait, raw, key, actor)
			}
			if err != nil {
				p := problem.From(err)
				outcomes[i] = answer.Enqueued{Error: p.Code, Reason: p.Reason}
			}
			return nil
		})
	}
	return outcomes, g.Wait()
}

// cutKey takes the key out of a job in an array.
func cutKey(raw []byte) (job []byte, key string, err error) {
	given := gjson.GetBytes(raw, memberKey)
	if !given.Exists() {
		return raw, "", nil
	}
	if given.Type != gjson.String || given.String() == "" {
		return nil, "", problem.BadRequest("member %s must be a text", memberKey)
	}
	job, err = sjson.DeleteBytes(raw, memberKey)
	if err != nil {
		return nil, "", problem.BadRequest("member %s cannot be read: %s", memberKey, problem.Shorten(err.Error()))
	}
	return job, given.String(), nil
}

// enqueueOne publishes a job. Under a key the leader publishes it, once. Whether a unique job has
// its key is awaited until wait ends.
func (e *enqueueAPI) enqueueOne(ctx, wait context.Context, raw []byte, key, actor string) (answer.Enqueued, error) {
	if key != "" {
		jid, err := e.enqueueOnce(ctx, raw, key, actor)
		return answer.Enqueued{JID: jid}, err
	}
	m, job, err := e.message(raw)
	if err != nil {
		return answer.Enqueued{}, err
	}
	if job.Unique != nil {
		decided, stop := e.await(job.JID)
		defer stop()
		if err := e.publishOne(ctx, m); err != nil {
			return answer.Enqueued{}, err
		}
		return decisionOf(wait, decided, job.JID), nil
	}
	return answer.Enqueued{JID: job.JID}, e.publishOne(ctx, m)
}

// publishOne publishes a message, and says what went wrong if it did.
func (e *enqueueAPI) publishOne(ctx context.Context, m wire.Message) error {
	switch err := e.publish(ctx, m); {
	case errors.Is(err, broker.ErrUnpublishable):
		return problem.BadRequest("no broker can take this job: %s", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, broker.ErrLost):
		p := problem.New(http.StatusGatewayTimeout, "the broker did not confirm the job in time: it may have it, and a repeat may double it")
		p.Cause = err
		return p
	case err != nil:
		return problem.Unavailable(err, "the broker did not take the job")
	}
	return nil
}

func (e *enqueueAPI) enqueueOnce(ctx context.Context, raw []byte, key, actor string) (jid string, err error) {
	if len(raw) > maxKeyedJob {
		return "", problem.New(http.StatusRequestEntityTooLarge, "a job that is enqueued under a key has at most %d bytes", maxKeyedJob)
	}
	if _, job, err := e.message(raw); err != nil {
		return "", err
	} else if job.Unique != nil {
		return "", problem.BadRequest("a unique job needs no %s: its key can be taken for a time, with \"for\"", headerKey)
	}
	at, timed, err := timeOf(raw)
	if err != nil {
		return "", err
	}
	cmd := wire.Command{Command: wire.CommandEnqueue, Key: key, Job: raw, Actor: actor}
	if timed {
		cmd.At = &at
	}
	body, err := json.Marshal(cmd)
	if err == nil {
		_, err = wire.ParseCommand(body)
	}
	if err != nil {
		return "", problem.BadRequest("%s", problem.Shorten(err.Error()))
	}
	reply := e.ask(ctx, cmd)
	if p := problem.FromReply(reply); p != nil {
		return "", p
	}
	return reply.JID, nil
}

// message makes a message of a job as a client wrote it. What Millrace adds (jid, enqueued_at) is
// put in front; the rest stays byte for byte. A job with a time becomes a scheduled one.
func (e *enqueueAPI) message(raw []byte) (m wire.Message, job wire.Job, err error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' {
		return m, job, problem.BadRequest("a job must be a JSON object")
	}
	at, timed, err := timeOf(raw)
	if err != nil {
		return m, job, err
	}
	var front []byte
	if !gjson.GetBytes(raw, "jid").Exists() {
		front = fmt.Appendf(front, `"jid":%s,`, quote(newJID()))
	}
	if !timed && !gjson.GetBytes(raw, "enqueued_at").Exists() {
		front = fmt.Appendf(front, `"enqueued_at":%s,`, secondsText(wire.Seconds(e.now())))
	}
	body := prepend(raw, front)
	if job, err = wire.ParseJob(body); err != nil {
		return m, job, problem.BadRequest("this is no job: %s", err)
	}
	if args := gjson.GetBytes(raw, "args"); args.Exists() && args.Type != gjson.Null && !args.IsArray() {
		return m, job, problem.BadRequest("member args must be an array")
	}
	if job.JID == "" {
		return m, job, problem.BadRequest("the job's jid is empty: leave it out, and it gets one")
	}
	if timed && job.Unique != nil {
		timed = false
		if body, err = forLater(&job, body, at); err != nil {
			return m, job, problem.BadRequest("this is no job: %s", err)
		}
	}
	m = wire.Message{
		MessageID: wire.Property(job.JID), Type: wire.Property(job.Class), Timestamp: e.now(),
		Priority: job.Priority, Body: body,
	}
	if !timed {
		sendJob(e.governed, &m, &job)
		return m, job, refuseFull(e.governed, job.Queue)
	}
	m.Exchange, m.Key, m.Priority = "", wire.ScheduledJobs, 0
	m.Body = wire.ScheduledJob(job.JID, at, body)
	if _, err := wire.ParseEntry(wire.ScheduledJobs, 0, m.Body); err != nil {
		return m, job, problem.BadRequest("this is no job: %s", err)
	}
	return m, job, nil
}

// timeOf returns when a job is to run. The member stays in the job: a worker may want to know.
func timeOf(job []byte) (at float64, given bool, err error) {
	v := gjson.GetBytes(job, "at")
	if !v.Exists() || v.Type == gjson.Null {
		return 0, false, nil
	}
	t, err := time.Parse(time.RFC3339Nano, v.String())
	if v.Type == gjson.Number {
		t, err = problem.ParseTime(v.Raw, time.Time{})
	}
	if err != nil {
		return 0, false, problem.BadRequest("member at must be seconds since 1970 or a time like 2026-01-31T12:00:00Z")
	}
	return wire.Seconds(t), true, nil
}

// forLater returns a unique job with the time at which it is due. It goes to jobs.gated in any
// case.
func forLater(job *wire.Job, body []byte, at float64) ([]byte, error) {
	if !job.GateAt.IsZero() {
		return body, nil
	}
	body, err := wire.SetRaw(body, "gate.at", secondsText(at))
	if err == nil {
		_, err = wire.ParseJob(body)
	}
	return body, err
}

func secondsText(at float64) string { return strconv.FormatFloat(at, 'f', -1, 64) }

// prepend puts members, each followed by a comma, before an object's own.
func prepend(object, members []byte) []byte {
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
