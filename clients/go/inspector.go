package millrace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// DefaultAPIURL is used if an InspectorConfig names no sidecar.
const DefaultAPIURL = "http://guest:guest@127.0.0.1:15680"

// InspectorConfig says how to reach a sidecar's REST API. The zero value uses the one at
// DefaultAPIURL.
type InspectorConfig struct {
	// URL is http://user:password@host:port, or https://. The user is a user of the broker. If URL
	// is empty, it is DefaultAPIURL.
	URL   string
	Token string // in place of user and password, if the sidecar has tokens
	// HTTPClient may have its own certificates and limits. If it is nil, a call may take 10 s.
	HTTPClient *http.Client
}

// Inspector finds jobs, and cancels, deletes, retries and reschedules them, over the REST API of a
// sidecar. It is safe for concurrent use.
//
// The error is an *APIError if the sidecar refused, ErrUnreachable if no sidecar was reached, and
// ErrUnconfirmed if there was no answer. After ErrUnconfirmed the request may have been carried
// out. It is safe to repeat it.
type Inspector struct {
	base   *url.URL
	user   *url.Userinfo
	token  string
	client *http.Client
}

// ErrNotFound is returned when there is no such job or queue. The error is an *APIError too.
var ErrNotFound = errors.New("not found")

// APIError is returned when a sidecar refused a request.
type APIError struct {
	Status int    // of HTTP
	Code   string // for programs, such as conflict or access_refused
	Reason string // for people
}

func (e *APIError) Error() string {
	return fmt.Sprintf("millrace: %s (%d %s)", e.Reason, e.Status, e.Code)
}

// Is reports whether target is ErrNotFound and the sidecar answered that.
func (e *APIError) Is(target error) bool {
	return target == ErrNotFound && e.Status == http.StatusNotFound
}

// FoundJob is what is known of a job: where it waits now, and how its attempts ended, the newest
// first. A job without an entry is in its queue, is running, or has ended.
type FoundJob struct {
	JID     string
	Entries []FoundEntry
	Runs    []FoundRun
}

// FoundEntry is a job that waits outside of its queue.
type FoundEntry struct {
	JID     string
	Set     string    // scheduled-jobs, retries, dead-jobs or gated-jobs
	At      time.Time // when the job is due, or died
	Class   string
	Queue   string
	Attempt int // how many attempts have failed
	// Record is the record that was published. Its member job is the job, and its member millrace
	// has the other fields.
	Record json.RawMessage
}

// FoundRun is an attempt that a worker reported.
type FoundRun struct {
	At         time.Time // when it ended
	Class      string
	Queue      string
	Status     string // success, failed, dead, discarded or expired
	Attempt    int    // from 1; 0 if not reported
	ErrorClass string
}

// QueueSize is how full a queue is.
type QueueSize struct {
	Name      string `json:"name"`
	State     string `json:"state"`     // running, idle, no_consumers, paused, or the broker's word
	Ready     int    `json:"ready"`     // jobs that wait in it
	Running   *int   `json:"unacked"`   // jobs that workers have; nil if not reported
	Scheduled int    `json:"scheduled"` // scheduled jobs of this queue
	Retries   int    `json:"retries"`   // jobs of this queue that wait for a retry
	Dead      int    `json:"dead"`
}

const (
	inspectWithin = 10 * time.Second
	inspectAtOnce = 500 // queues or jobs in one answer
	scheduledSet  = "scheduled-jobs"
	retriesSet    = "retries"
	deadSet       = "dead-jobs"
	gatedSet      = "gated-jobs"
)

// NewInspector returns an Inspector. It does not connect yet.
func NewInspector(cfg InspectorConfig) (*Inspector, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultAPIURL
	}
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("millrace: the sidecar's URL must be http://user:password@host:port, or https://")
	}
	i := &Inspector{base: base, user: base.User, token: cfg.Token, client: cfg.HTTPClient}
	base.User = nil
	if i.client == nil {
		i.client = &http.Client{Timeout: inspectWithin}
	}
	return i, nil
}

// Find returns what is known of a job. It returns ErrNotFound if nothing is known.
func (i *Inspector) Find(ctx context.Context, jid string) (*FoundJob, error) {
	var answer struct {
		Entries []json.RawMessage `json:"entries"`
		Runs    []struct {
			At         float64 `json:"at"`
			Class      string  `json:"class"`
			Queue      string  `json:"queue"`
			Status     string  `json:"status"`
			Attempt    int     `json:"attempt"`
			ErrorClass string  `json:"error_class"`
		} `json:"runs"`
	}
	if err := i.call(ctx, http.MethodGet, nil, &answer, "jobs", jid); err != nil {
		return nil, err
	}
	found := &FoundJob{JID: jid}
	for _, record := range answer.Entries {
		e, err := foundEntry(record)
		if err != nil {
			return nil, err
		}
		e.JID = jid
		found.Entries = append(found.Entries, e)
	}
	for _, r := range answer.Runs {
		found.Runs = append(found.Runs, FoundRun{timeOf(r.At), r.Class, r.Queue, r.Status, r.Attempt, r.ErrorClass})
	}
	return found, nil
}

func foundEntry(record json.RawMessage) (FoundEntry, error) {
	type named struct {
		JID string `json:"jid"`
	}
	var about struct {
		named
		Job      named `json:"job"`
		Millrace struct {
			Set     string  `json:"set"`
			At      float64 `json:"at"`
			Class   string  `json:"class"`
			Queue   string  `json:"queue"`
			Attempt int     `json:"attempt"`
		} `json:"millrace"`
	}
	if err := json.Unmarshal(record, &about); err != nil {
		return FoundEntry{}, fmt.Errorf("millrace: the sidecar's answer: %w", err)
	}
	e := about.Millrace
	return FoundEntry{cmp.Or(about.JID, about.Job.JID), e.Set, timeOf(e.At), e.Class, e.Queue, e.Attempt, record}, nil
}

// FindByTag returns the jobs with a tag that wait outside of their queues: those that are
// scheduled, wait for a retry, are dead, or wait until their queue exists. It asks the sidecar for
// some at a time. After an error there are no more jobs. A job that moves meanwhile may come twice.
// Records over 64 KiB are not searched.
func (i *Inspector) FindByTag(ctx context.Context, tag string) iter.Seq2[FoundEntry, error] {
	return func(yield func(FoundEntry, error) bool) {
		for _, set := range []string{scheduledSet, retriesSet, deadSet, gatedSet} {
			if !i.findIn(ctx, set, tag, yield) {
				return
			}
		}
	}
}

// findIn yields the jobs of a set with a tag, and reports whether to continue.
func (i *Inspector) findIn(ctx context.Context, set, tag string, yield func(FoundEntry, error) bool) bool {
	query := url.Values{"tag": {tag}, "page": {"1"}, "page_size": {strconv.Itoa(inspectAtOnce)}}
	for {
		var page struct {
			Items []json.RawMessage `json:"items"`
			Next  *string           `json:"next"`
		}
		if err := i.call(ctx, http.MethodGet, nil, &page, set+"?"+query.Encode()); err != nil {
			yield(FoundEntry{}, err)
			return false
		}
		for _, item := range page.Items {
			e, err := foundEntry(item)
			e.Set = set
			if !yield(e, err) || err != nil {
				return false
			}
		}
		if page.Next == nil {
			return true
		}
		query.Set("next", *page.Next)
	}
}

// Delete deletes a job that is scheduled, waits for a retry, or is dead. It returns ErrNotFound if
// the job is none of these.
func (i *Inspector) Delete(ctx context.Context, jid string) error {
	return i.call(ctx, http.MethodDelete, nil, nil, "jobs", jid)
}

// Cancel asks the worker that runs a job to cancel it. The context of the handler ends, with the
// cause ErrCancelled. The runs of the job show whether the handler heeded that. Cancel returns
// ErrNotFound if no worker reports that it runs the job.
func (i *Inspector) Cancel(ctx context.Context, jid string) error {
	return i.call(ctx, http.MethodPost, nil, nil, "jobs", jid, "cancel")
}

// Retry puts a job that waits for a retry, or is dead, into its queue now. It returns ErrNotFound
// if the job is neither.
func (i *Inspector) Retry(ctx context.Context, jid string) error {
	set, err := i.setOf(ctx, jid, retriesSet, deadSet)
	if err != nil {
		return err
	}
	return i.call(ctx, http.MethodPost, nil, nil, set, jid, "retry")
}

// Reschedule sets when a scheduled job, or a retry, is due. It returns ErrNotFound if the job is
// neither.
func (i *Inspector) Reschedule(ctx context.Context, jid string, at time.Time) error {
	set, err := i.setOf(ctx, jid, scheduledSet, retriesSet)
	if err != nil {
		return err
	}
	return i.call(ctx, http.MethodPatch, map[string]float64{"at": wire.Seconds(at)}, nil, set, jid)
}

// Queue returns the size of a queue. It returns ErrNotFound if there is no such queue.
func (i *Inspector) Queue(ctx context.Context, name string) (QueueSize, error) {
	var q QueueSize
	err := i.call(ctx, http.MethodGet, nil, &q, "job-queues", name)
	return q, err
}

// Queues returns all queues, by name.
func (i *Inspector) Queues(ctx context.Context) ([]QueueSize, error) {
	var all []QueueSize
	for {
		var page []QueueSize
		query := fmt.Sprintf("job-queues?limit=%d&offset=%d", inspectAtOnce, len(all))
		if err := i.call(ctx, http.MethodGet, nil, &page, query); err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < inspectAtOnce {
			return all, nil
		}
	}
}

// setOf returns the one of some sets in which a job waits.
func (i *Inspector) setOf(ctx context.Context, jid string, sets ...string) (string, error) {
	found, err := i.Find(ctx, jid)
	if err != nil {
		return "", err
	}
	for _, e := range found.Entries {
		if slices.Contains(sets, e.Set) {
			return e.Set, nil
		}
	}
	return "", &APIError{http.StatusNotFound, "not_found", fmt.Sprintf("job %s is not in %s", jid, strings.Join(sets, " or "))}
}

// call sends a request. It escapes the parts of the path after the first one.
func (i *Inspector) call(ctx context.Context, method string, body, answer any, path ...string) error {
	for n := range path[1:] {
		path[n+1] = url.PathEscape(path[n+1])
	}
	sent := []byte(nil)
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("millrace: %w", err)
		}
	}
	address := strings.TrimSuffix(i.base.String(), "/") + "/api/" + strings.Join(path, "/")
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(sent))
	if err != nil {
		return fmt.Errorf("millrace: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if i.token != "" {
		req.Header.Set("Authorization", "Bearer "+i.token)
	} else if password, _ := i.user.Password(); i.user != nil {
		req.SetBasicAuth(i.user.Username(), password)
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return notAnswered(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return notAnswered(err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return refusal(resp.StatusCode, text)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("millrace: the sidecar's answer: %w", err)
	}
	return nil
}

// unanswered is the error of a request without an answer: ErrUnreachable or ErrUnconfirmed, and
// why.
type unanswered struct{ is, cause error }

func notAnswered(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return unanswered{ErrUnreachable, err}
	}
	return unanswered{ErrUnconfirmed, err}
}

func (e unanswered) Error() string {
	if errors.Is(e.is, ErrUnreachable) {
		return "millrace: no sidecar was reached: " + e.cause.Error()
	}
	return "millrace: no answer from the sidecar, so it may have been done: " + e.cause.Error()
}

func (e unanswered) Unwrap() []error { return []error{e.is, e.cause} }

// refusal returns the error for a status other than success.
func refusal(status int, body []byte) error {
	var said struct{ Error, Reason string }
	if json.Unmarshal(body, &said) != nil || said.Error == "" {
		said.Error, said.Reason = "unknown", "this is no answer of a sidecar: "+http.StatusText(status)
	}
	if status == http.StatusGatewayTimeout {
		return unanswered{ErrUnconfirmed, errors.New(said.Reason)}
	}
	return &APIError{status, said.Error, said.Reason}
}

func timeOf(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }
