package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const user = "millrace"

// world is a real tracker on a store in memory, filled by folding records, with a server before it.
type world struct {
	t       testing.TB
	store   *view.Store
	entries *tracker.Entries
	view    *view.View
	config  httpapi.Config
	server  *httpapi.Server
	log     *lines
	source  source
	broker  *directory   // who signs in, if authentication is on
	expired *http.Cookie // of a session that has ended

	mu        sync.Mutex
	offsets   map[string]int64
	streams   map[string]map[int64]wire.Record // what Fetch finds
	unread    error                            // why Fetch finds nothing
	commands  []wire.Command
	published []wire.Message
	reply     wire.Reply
	onCommand func(wire.Command) // what the leader does before it replies
	publish   error
	connected bool
	status    scheduler.Status
	workers   *processes.Processes
	sums      *metrics.Metrics
	clock     time.Time // of the trackers that depend on one
}

func newWorld(t testing.TB, change ...func(*httpapi.Config)) *world {
	t.Helper()
	w := &world{
		t: t, offsets: map[string]int64{}, streams: map[string]map[int64]wire.Record{}, connected: true, log: &lines{}, source: source{},
		reply: wire.Reply{Status: wire.StatusDone}, status: scheduler.Status{Epoch: -1, Accepts: true},
		clock: time.Unix(1_700_000_000, 0),
	}
	var err error
	w.store, err = view.Open(view.Config{Schema: tracker.Schema, Identity: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.entries, err = tracker.NewEntries(w.store, user)
	require.NoError(t, err)
	w.workers, err = processes.Open(w.store, func() time.Time { return w.clock })
	require.NoError(t, err)
	w.entries.Add(w.workers)
	w.sums, err = metrics.New(w.store, func() time.Time { return w.clock }, user)
	require.NoError(t, err)
	w.entries.Add(w.sums)
	w.view = view.New(w.store, w.source, w.entries, slog.New(slog.DiscardHandler), wire.Journal, wire.EntryStreams...)
	w.config = httpapi.Config{
		Version: "1.2.3", VHost: "/", Entries: w.entries.Reader, View: w.view, Processes: w.workers, Metrics: w.sums.Reader(), Grace: time.Second,
		Leader:  func() scheduler.Status { return w.status },
		Ask:     w.ask,
		Publish: w.take,
		Fetch:   w.fetch,
		Broker:  func() (bool, string, string) { return w.connected, "RabbitMQ", "4.1.0" },
		Log:     slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&w.config)
	}
	w.build()
	return w
}

// build creates the world's server, with every answer compared with the contract.
func (w *world) build() {
	w.server = httpapi.New(w.config)
	if _, benchmark := w.t.(*testing.B); !benchmark {
		w.server.WrapHandler(func(next http.Handler) http.Handler { return held(w.t, document(w.t), next) })
	}
}

func jsonDecode(raw []byte, into any) error { return json.Unmarshal(raw, into) }

func (w *world) ask(_ context.Context, c wire.Command) wire.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commands = append(w.commands, c)
	if w.onCommand != nil {
		w.onCommand(c)
	}
	return w.reply
}

func (w *world) take(_ context.Context, m wire.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, m)
	return w.publish
}

func (w *world) fetch(ctx context.Context, stream string, offset int64) (wire.Record, error) {
	r, ok := w.streams[stream][offset]
	switch {
	case ctx.Err() != nil:
		return wire.Record{}, ctx.Err()
	case w.unread != nil:
		return wire.Record{}, w.unread
	case !ok:
		return r, fmt.Errorf("%w: %s@%d", streams.ErrNotFound, stream, offset)
	}
	return r, nil
}

// fold has the tracker fold one record.
func (w *world) fold(r wire.Record) int64 {
	w.t.Helper()
	r.Offset = w.offsets[r.Stream]
	w.offsets[r.Stream]++
	if w.streams[r.Stream] == nil {
		w.streams[r.Stream] = map[int64]wire.Record{}
	}
	w.streams[r.Stream][r.Offset] = r
	require.NoError(w.t, w.store.Update(func(tx *view.Tx) error {
		if err := w.entries.Fold(tx, &r); err != nil {
			return err
		}
		return w.entries.Commit(tx)
	}))
	return r.Offset
}

// add appends a record of a client.
func (w *world) add(stream, body string) int64 {
	w.t.Helper()
	return w.fold(wire.Record{Stream: stream, Body: []byte(body), Time: time.Unix(1_700_000_000, 0)})
}

// journal appends a record of the leader.
func (w *world) journal(r wire.JournalRecord) int64 {
	w.t.Helper()
	body, err := json.Marshal(r)
	require.NoError(w.t, err)
	return w.fold(wire.Record{Stream: wire.Journal, UserID: user, Body: body, Time: time.Unix(1_700_000_000, 0)})
}

func scheduled(jid string, at float64) string {
	return fmt.Sprintf(`{"type":"scheduled_job","jid":%q,"scheduled_at":%f,"job":{"jid":%q,"class":"Mail","queue":"default","args":[1]}}`, jid, at, jid)
}

func retry(jid string, at float64, queue, class, errorClass string) string {
	return fmt.Sprintf(`{"type":"retry","jid":%q,"retry_at":%f,"retry_count":2,"error_class":%q,"error_message":"it broke","job":{"jid":%q,"class":%q,"queue":%q,"args":[]}}`,
		jid, at, errorClass, jid, class, queue)
}

func dead(jid string, at float64) string {
	return fmt.Sprintf(`{"type":"dead_job","jid":%q,"died_at":%f,"error_class":"E","error_message":"m","job":{"class":"Mail","args":[]}}`, jid, at)
}

// answer is a response and its body.
type answer struct {
	*http.Response
	body string
}

func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(recorder, r)
	response := recorder.Result()
	body, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	return answer{response, string(body)}
}

func request(method, target, body string) *http.Request {
	var r *http.Request
	if body == "" {
		r = httptest.NewRequest(method, target, nil)
	} else {
		r = httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host = "localhost:15680"
	return r
}

func (w *world) get(target string) answer {
	w.t.Helper()
	return w.send(request(http.MethodGet, target, ""))
}

func (w *world) do(method, target, body string) answer {
	w.t.Helper()
	return w.send(request(method, target, body))
}

// problem is an error as a client reads it.
type problem struct {
	Error     string
	Reason    string
	RequestID string `json:"request_id"`
	Happened  *wire.Happened
	Offsets   []int64
}

func (a answer) problem(t testing.TB, status int, code string) problem {
	t.Helper()
	require.Equal(t, status, a.StatusCode, a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	var p problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	require.Equal(t, code, p.Error, a.body)
	require.NotEmpty(t, p.Reason)
	require.Equal(t, a.Header.Get("X-Request-Id"), p.RequestID)
	require.NotEmpty(t, p.RequestID)
	return p
}

// page is an envelope as a client reads it.
type page struct {
	Total     int64  `json:"total_count"`
	Filtered  *int64 `json:"filtered_count"`
	AtLeast   *int64 `json:"filtered_count_at_least"`
	Searched  *int64 `json:"searched"`
	Unread    int64  `json:"unsearched"`
	ItemCount int    `json:"item_count"`
	Page      int64  `json:"page"`
	PageSize  int    `json:"page_size"`
	PageCount *int64 `json:"page_count"`
	AsOf      *int64 `json:"as_of"`
	Next      *string
	Items     []json.RawMessage
}

func (w *world) page(target string) page {
	w.t.Helper()
	a := w.get(target)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(w.t, "application/json", a.Header.Get("Content-Type"))
	var p page
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &p), a.body)
	require.Len(w.t, p.Items, p.ItemCount)
	return p
}

func jids(t testing.TB, items []json.RawMessage) []string {
	t.Helper()
	all := []string{}
	for _, i := range items {
		var e struct{ JID string }
		require.NoError(t, json.Unmarshal(i, &e))
		all = append(all, e.JID)
	}
	return all
}

func (w *world) jids(target string) []string {
	w.t.Helper()
	a := w.get(target)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	var items []json.RawMessage
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &items), a.body)
	return jids(w.t, items)
}

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// source is a broker whose streams have the records that were put there.
type source map[string][]wire.Record

func (s source) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	if all := s[stream]; len(all) > 0 {
		if err := deliver(all[max(from, 0):]); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s source) Fetch(_ context.Context, stream string, offset int64) (wire.Record, error) {
	return s[stream][offset], nil
}

func (s source) Next(_ context.Context, _ string, offset int64) (int64, error) { return offset, nil }

func (s source) First(_ context.Context, stream string) (int64, bool, error) {
	return 0, len(s[stream]) > 0, nil
}

func (s source) Last(_ context.Context, stream string) (int64, bool, error) {
	return int64(len(s[stream]) - 1), len(s[stream]) > 0, nil
}

func (s source) LastIsCheap() bool { return true }

// catchUp runs the view until it has caught up. The view runs until the test ends.
func (w *world) catchUp() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.view.Run(ctx) }()
	select {
	case <-w.view.Ready():
	case <-time.After(10 * time.Second):
		w.t.Error("the view does not catch up")
	}
	return func() {
		cancel()
		require.NoError(w.t, <-done)
	}
}

func readAll(t testing.TB, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(body)
}

// again is the same world behind another server.
func (w *world) again(change func(*httpapi.Config)) *world {
	change(&w.config)
	w.build()
	return w
}

// unchecked is the same world behind another server whose answers are not compared with the
// contract: its paths differ.
func (w *world) unchecked(change func(*httpapi.Config)) {
	change(&w.config)
	w.server = httpapi.New(w.config)
}

// large is a retry that the view does not keep.
func large(jid string, at float64) string {
	return strings.Replace(retry(jid, at, "q", "C", "E"), `"args":[]`, `"args":["`+strings.Repeat("x", 70<<10)+`"]`, 1)
}
