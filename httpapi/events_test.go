package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/wire"
)

// event is a message as a viewer gets it.
type event struct {
	ID, Event string
	Data      json.RawMessage
}

// listening is a world whose server listens.
func listening(t *testing.T, change ...func(*httpapi.Config)) (*world, *httptest.Server) {
	t.Helper()
	happens := feed.New(slog.New(slog.DiscardHandler))
	w := newWorld(t, append([]func(*httpapi.Config){func(c *httpapi.Config) { c.Feed = happens }}, change...)...)
	w.entries.SetObserver(happens)
	server := httptest.NewServer(w.server.Handler())
	t.Cleanup(server.Close)
	return w, server
}

// viewer reads server-sent events.
type viewer struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel context.CancelFunc
	last   string // id
}

func watch(t *testing.T, url string, headers ...string) *viewer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		require.Failf(t, "no events", "%d %s", response.StatusCode, body)
	}
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	require.Equal(t, "no", response.Header.Get("X-Accel-Buffering"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return &viewer{t: t, lines: lines, cancel: cancel}
}

// next reads an event and compares it with the contract.
func (v *viewer) next() (e event) {
	v.t.Helper()
	for v.lines.Scan() {
		name, value, _ := strings.Cut(v.lines.Text(), ": ")
		switch name {
		case "id":
			e.ID, v.last = value, value
		case "event":
			e.Event = value
		case "data":
			e.Data = json.RawMessage(value)
			checkEvent(v.t, e)
			return e
		}
	}
	require.Fail(v.t, "the events have ended", "%v", v.lines.Err())
	return e
}

func checkEvent(t *testing.T, e event) {
	t.Helper()
	schema := map[string]string{"update": "Update"}[e.Event]
	if schema == "" {
		schema = "EventReason"
	}
	var value any
	require.NoError(t, json.Unmarshal(e.Data, &value), string(e.Data))
	require.NoError(t, document(t).Components.Schemas[schema].Value.VisitJSON(value), string(e.Data))
}

// update reads the next update into the fields that a test needs.
func (v *viewer) update(into any) event {
	v.t.Helper()
	e := v.next()
	require.Equal(v.t, "update", e.Event, string(e.Data))
	require.NoError(v.t, json.Unmarshal(e.Data, into))
	return e
}

type size struct{ Total, As_of int64 }

func TestEventsReportChanges(t *testing.T) {
	w, server := listening(t)
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	v := watch(t, server.URL+"/api/events?topics=retries,jobs,dead,operations")
	var first struct {
		Now           float64
		Retries, Dead *size
		Operations    []json.RawMessage
		Jobs, Queues  *struct{}
	}
	v.update(&first)
	require.Positive(t, first.Now)
	require.EqualValues(t, 1, first.Retries.Total)
	require.NotNil(t, first.Dead)
	require.NotNil(t, first.Operations)
	require.Nil(t, first.Jobs, "nothing has happened")
	require.Nil(t, first.Queues, "it was not requested")

	// Later events contain only what has changed.
	w.fold(wire.Record{Stream: wire.Retries, Body: []byte(retry("b", 2_000_000_000, "q", "C", "E"))})
	var then struct {
		Retries, Dead *size
		Jobs          *struct {
			Items  []feed.Event
			Missed int64
		}
	}
	v.update(&then)
	require.Nil(t, then.Dead)
	for then.Retries == nil || then.Jobs == nil { // it may come in two events
		v.update(&then)
	}
	require.EqualValues(t, 2, then.Retries.Total)
	require.Equal(t, "b", then.Jobs.Items[0].JID)
	require.Zero(t, then.Jobs.Missed)
}

func TestEventsHaveEveryTopic(t *testing.T) {
	w, server := listening(t)
	w.add(wire.Heartbeats, beat("h:1:x", ""))
	e := watch(t, server.URL+"/api/events").next()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e.Data, &all))
	for _, topic := range []string{"overview", "queues", "processes", "scheduled", "retries", "dead", "operations"} {
		require.Contains(t, all, topic)
	}
	require.Contains(t, string(all["processes"]), `"identity":"h:1:x"`)
	require.Equal(t, "null", string(all["queues"]), "this server does not watch queues")
}

func TestEventsResumeAtLastID(t *testing.T) {
	w, server := listening(t)
	url := server.URL + "/api/events?topics=retries,jobs"
	v := watch(t, url)
	v.next()
	w.fold(wire.Record{Stream: wire.Retries, Body: []byte(retry("a", 2_000_000_000, "q", "C", "E"))})
	for id := v.next().ID; !strings.HasSuffix(id, ".1.1"); id = v.next().ID { // until it has received what happened
	}
	v.cancel()

	w.fold(wire.Record{Stream: wire.Retries, Body: []byte(retry("b", 2_000_000_000, "q", "C", "E"))})
	var then struct {
		Retries *size
		Jobs    struct {
			Items  []feed.Event
			Missed int64
		}
	}
	back := watch(t, url, "Last-Event-ID", v.last)
	for then.Retries == nil || then.Jobs.Items == nil { // it may come in two events
		back.update(&then)
	}
	require.EqualValues(t, 2, then.Retries.Total)
	require.Len(t, then.Jobs.Items, 1, "without the events that it had received")
	require.Equal(t, "b", then.Jobs.Items[0].JID)

	then.Jobs.Items = nil
	watch(t, url+"&last_event_id="+v.last).update(&then)
	require.Len(t, then.Jobs.Items, 1, "for clients that cannot set headers")
	for _, id := range []string{"nonsense", "another1.3.4.5", strings.Replace(v.last, ".", ".99", 1), strings.Replace(v.last, ".", ".x", 1)} {
		then.Jobs.Items = nil
		watch(t, url, "Last-Event-ID", id).update(&then)
		require.Len(t, then.Jobs.Items, 2, "%s: from the beginning", id)
	}
}

// A viewer that has received everything gets nothing until something happens.
func TestNoEventsWithoutChanges(t *testing.T) {
	w, server := listening(t)
	url := server.URL + "/api/events?topics=overview,processes,retries"
	v := watch(t, url)
	v.next()
	again := watch(t, url+"&for=3", "Last-Event-ID", v.last)
	require.Equal(t, "end", again.next().Event)
	require.Eventually(t, func() bool { return strings.Contains(w.get("/metrics").body, `millrace_sse_clients{vhost="/"} 1`) }, 30*time.Second, 10*time.Millisecond)
}

func TestEventStreamEnds(t *testing.T) {
	_, server := listening(t)
	v := watch(t, server.URL+"/api/events?for=0")
	for e := v.next(); e.Event != "end"; e = v.next() {
	}
	for v.lines.Scan() { // the connection ends too
	}
	require.NoError(t, v.lines.Err())
}

func TestInvalidEventRequests(t *testing.T) {
	w := newWorld(t)
	w.get("/api/events?topics=nonsense").problem(t, http.StatusBadRequest, "bad_request")
	w.get("/api/events?topics=retries,").problem(t, http.StatusBadRequest, "bad_request")
	w.get("/api/events?for=3601").problem(t, http.StatusBadRequest, "bad_request")
	w.get("/api/events?nonsense=1").problem(t, http.StatusBadRequest, "bad_request")
	require.Equal(t, "text/event-stream", w.do(http.MethodHead, "/api/events", "").Header.Get("Content-Type"))
	r := request(http.MethodGet, "/api/events", "")
	r.Header.Set("Upgrade", "websocket")
	w.send(r).problem(t, http.StatusBadRequest, "bad_request")
}

// A viewer that does not read is cut off, delays no other, and gets a dropped event when it comes
// back.
func TestSlowViewersAreCutOff(t *testing.T) {
	w, server := listening(t)
	w.server.ReadWithin(2 * time.Second) // long enough for viewers that read, on a busy machine
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(1<<10))
	_, err = io.WriteString(conn, "GET /api/events?topics=processes HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	v := watch(t, server.URL+"/api/events?topics=processes,retries")
	v.next()
	body := strings.Repeat(`{"jid":"`+strings.Repeat("x", 100)+`","class":"C","queue":"q"},`, 1200)
	for i := 0; !strings.Contains(w.get("/metrics").body, "millrace_sse_dropped_total{vhost=\"/\"} 1"); i++ {
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			w.add(wire.Heartbeats, beat(name, `,"rss_kb":`+jsonOf(i)+`,"work":[`+strings.TrimSuffix(body, ",")+`]`))
		}
		w.server.Wake()
		v.next() // no test waits for it
	}
	require.NoError(t, conn.Close())
	cut := strings.TrimSuffix(v.last, lastPart(v.last)) + "1"
	again := watch(t, server.URL+"/api/events?topics=retries", "Last-Event-ID", cut)
	require.Equal(t, "dropped", again.next().Event)
	again = watch(t, server.URL+"/api/events?topics=retries&for=0", "Last-Event-ID", cut)
	require.NotEqual(t, "dropped", again.next().Event, "it is sent once")
}

func lastPart(id string) string { return id[strings.LastIndex(id, ".")+1:] }

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestEventsOverWebSocket(t *testing.T) {
	w, server := listening(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, server.URL+"/api/events?topics=retries&for=60", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {server.URL}}})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	read := func() (e event) {
		kind, raw, err := conn.Read(ctx)
		require.NoError(t, err)
		require.Equal(t, websocket.MessageText, kind)
		require.NoError(t, json.Unmarshal(raw, &e))
		checkEvent(t, e)
		return e
	}
	require.Contains(t, string(read().Data), `"retries":{"total":0`)
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	e := read()
	require.Contains(t, string(e.Data), `"retries":{"total":1`)
	require.NotEmpty(t, e.ID)

	// A page of another site gets none.
	_, response, err := websocket.Dial(ctx, server.URL+"/api/events", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://evil.example"}}})
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
}

func TestWebSocketsEndWithServer(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx, l) }()
	v := watch(t, "http://"+l.Addr().String()+"/api/events?topics=dead")
	v.next()
	var sockets []*websocket.Conn
	for range 30 {
		conn, _, err := websocket.Dial(context.Background(), "http://"+l.Addr().String()+"/api/events?topics=dead", nil)
		require.NoError(t, err)
		_, _, err = conn.Read(context.Background())
		require.NoError(t, err)
		sockets = append(sockets, conn)
	}
	stop()
	require.Equal(t, "end", v.next().Event)
	for _, conn := range sockets {
		_, raw, err := conn.Read(context.Background())
		require.NoError(t, err)
		require.Contains(t, string(raw), "this sidecar stops")
		_, _, err = conn.Read(context.Background())
		require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
	}
	require.NoError(t, <-done)
	require.NotContains(t, w.log.String(), "cut off at shutdown")
}

// A viewer whose permission ends gets nothing more.
func TestEventsEndWithSession(t *testing.T) {
	w := newSecured(t)
	w.server.AskWhoEvery(time.Millisecond)
	server := httptest.NewServer(w.server.Handler())
	defer server.Close()
	cookie := w.session("monitoring")
	v := watch(t, server.URL+"/api/events?topics=dead", "Cookie", cookie.String())
	v.next()
	w.broker.pass(9 * time.Hour)
	e := v.next()
	require.Equal(t, "end", e.Event)
	require.Contains(t, string(e.Data), "sign in")
}
