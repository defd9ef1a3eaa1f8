package live

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// Config configures Events. All fields must be set.
type Config struct {
	Source       Source
	MayStillRead func(r *http.Request) bool  // asked every now and then while a viewer watches
	CheckOrigin  func(r *http.Request) error // of a request for a WebSocket
	Stopping     <-chan struct{}             // closed when the server is to end
	Log          *slog.Logger
}

// Times are how viewers are treated. Tests lower them.
type Times struct {
	Ping    time.Duration // between signs of life, so that proxies keep the connection
	Recheck time.Duration // between checks whether a viewer may still read
	Read    time.Duration // a viewer that reads nothing for so long is cut off
}

// Events answers viewers with what changes.
type Events struct {
	Times Times

	cfg Config
	hub *hub
}

// New returns Events without viewers.
func New(cfg Config) *Events {
	return &Events{cfg: cfg, hub: newHub(cfg.Source), Times: Times{15 * time.Second, time.Minute, 10 * time.Second}}
}

// Counts returns how many viewers there are, and how many were cut off.
func (e *Events) Counts() (viewers int, dropped int64) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	return e.hub.audience.viewers, e.hub.dropped
}

// Wake computes what is watched now.
func (e *Events) Wake() { e.hub.wake() }

// maxSeconds is how long a connection lasts at most. Then the viewer connects again, and continues.
const maxSeconds = 3600

type subscription struct {
	topics Topic
	lastID string // of the last event that it has seen
	lasts  time.Duration
	socket bool
}

func readSubscription(in *problem.Request) (s subscription) {
	in.Query("topics", "last_event_id", "for")
	s.topics = readTopics(in)
	s.lasts = time.Duration(in.Number("for", maxSeconds, 0, maxSeconds)) * time.Second
	s.lastID = cmp.Or(in.Request().Header.Get("Last-Event-ID"), in.Text("last_event_id"))
	if s.socket = wantsSocket(in.Request()); s.socket {
		checkSocket(in)
	}
	return s
}

// Serve sends what changes until the viewer leaves, or must.
func (e *Events) Serve(c echo.Context) error {
	in, r := problem.Read(c), c.Request()
	asked := readSubscription(in)
	if in.Err() != nil {
		return in.Err()
	}
	if asked.socket {
		if err := e.cfg.CheckOrigin(r); err != nil {
			return err
		}
	}
	if r.Method == http.MethodHead {
		c.Response().Header().Set(echo.HeaderContentType, eventStream)
		return nil
	}
	number, leave, ok := e.hub.join(asked.topics)
	if !ok {
		return problem.New(http.StatusServiceUnavailable, "%d others watch already, which is the most: wait", maxViewers)
	}
	defer leave()
	problem.InfoOf(r).Streamed = true
	over := time.NewTimer(asked.lasts)
	defer over.Stop()
	v := &viewer{events: e, request: r, number: number, over: over.C, checked: time.Now()}
	var cut bool
	v.at, cut = e.hub.resume(asked.topics, asked.lastID)
	ctx := r.Context()
	if asked.socket {
		var err error
		if v.sink, ctx, err = openSocket(ctx, c.Response(), r, e.Times.Read); err != nil {
			return nil // it has been answered
		}
	} else {
		v.sink = openStream(c.Response(), e.Times.Read)
	}
	v.watch(ctx, cut)
	return nil
}

// viewer is a client that watches.
type viewer struct {
	events  *Events
	request *http.Request
	number  int64
	over    <-chan time.Time // when it has lasted long enough
	checked time.Time        // when it was last checked that it may read
	at      place
	sink    sink
}

// endError ends the events, and says why.
type endError string

func (e endError) Error() string { return string(e) }

// watch sends frames until the connection ends, or must.
func (v *viewer) watch(ctx context.Context, cut bool) {
	var err error
	if cut {
		err = v.sink.send(ctx, "", eventDropped, reasonJSON("no event was read for 10 seconds, so the connection was closed: the events until now are left out"))
	}
	for err == nil {
		err = v.step(ctx)
	}
	var ends endError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errUnread):
		v.events.hub.drop(v.number)
		v.events.cfg.Log.Info("httpapi: a viewer of events does not read: cut off", "request_id", problem.InfoOf(v.request).ID)
	case errors.As(err, &ends):
		v.sink.end(ctx, string(ends))
	}
}

// step sends the next frame as soon as there is one.
func (v *viewer) step(ctx context.Context) error {
	news := v.events.hub.news()
	f := v.events.hub.frame(v.at)
	if f == nil {
		return v.wait(ctx, news)
	}
	v.at = f.to
	if err := v.sink.send(ctx, v.events.hub.id(v.number, v.at), eventUpdate, f.data); err != nil {
		return err
	}
	pause := time.NewTimer(frameEvery)
	defer pause.Stop()
	_, err := v.until(ctx, nil, pause.C)
	return err
}

// wait waits for news, and keeps the connection meanwhile.
func (v *viewer) wait(ctx context.Context, news <-chan struct{}) error {
	ping := time.NewTicker(v.events.Times.Ping)
	defer ping.Stop()
	for {
		if is, err := v.until(ctx, news, ping.C); is || err != nil {
			return err
		}
		if err := errors.Join(v.recheck(), v.sink.ping(ctx)); err != nil {
			return err
		}
	}
}

// until waits for news or a timer. It returns an error when the connection ends, or must.
func (v *viewer) until(ctx context.Context, news <-chan struct{}, timer <-chan time.Time) (isNews bool, err error) {
	select {
	case <-news:
		return true, nil
	case <-timer:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-v.over:
		return false, endError("connect again to go on")
	case <-v.events.cfg.Stopping:
		return false, endError("this sidecar stops")
	}
}

// recheck ends the events of a user who may not read any more.
func (v *viewer) recheck() error {
	if time.Since(v.checked) < v.events.Times.Recheck {
		return nil
	}
	v.checked = time.Now()
	if !v.events.cfg.MayStillRead(v.request) {
		return endError("sign in again")
	}
	return nil
}
