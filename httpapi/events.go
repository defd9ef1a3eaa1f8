package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// eventTimes are how viewers are treated; tests lower them.
type eventTimes struct {
	ping   time.Duration // between signs of life, so that proxies keep the connection
	askWho time.Duration // between questions whether whoever watches still may
	taken  time.Duration // a viewer that takes nothing for so long is cut off
}

var usualTimes = eventTimes{15 * time.Second, time.Minute, 10 * time.Second}

const eventsRetryMS = 2000 // when a browser comes back

// Events are the kinds of messages.
const (
	eventUpdate  = "update"  // what has changed
	eventDropped = "dropped" // this viewer was cut off, and what it missed is left out
	eventEnd     = "end"     // nothing more comes: connect again
)

// eventSink is a viewer's connection.
type eventSink interface {
	send(ctx context.Context, id, event string, data []byte) error
	ping(ctx context.Context) error
	end(ctx context.Context, reason string) // says why, if it still can
}

// events sends what changes, as it does, until the viewer goes.
func (s *Server) events(c echo.Context) error {
	asked, err := parseEvents(c)
	if err != nil {
		return err
	}
	r := c.Request()
	if asked.socket {
		if err := s.checkSocket(r); err != nil {
			return err
		}
	}
	if r.Method == http.MethodHead {
		c.Response().Header().Set(echo.HeaderContentType, eventStream)
		return nil
	}
	number, leave, ok := s.hub.join(asked.topics)
	if !ok {
		return problem.New(http.StatusServiceUnavailable, "%d others watch already, which is the most: wait", maxViewers)
	}
	defer leave()
	problem.InfoOf(r).Streamed = true
	over := time.NewTimer(asked.lasts)
	defer over.Stop()
	v := &viewer{s: s, r: r, number: number, over: over.C, asked: time.Now()}
	var cut bool
	v.at, cut = s.hub.resume(asked.topics, asked.id)
	ctx := r.Context()
	if asked.socket {
		if ctx, err = v.openSocket(ctx, c.Response()); err != nil {
			return nil // it has been answered
		}
	} else {
		v.openStream(c.Response())
	}
	v.watch(ctx, cut)
	return nil
}

const eventStream = "text/event-stream"

// viewer is one who watches.
type viewer struct {
	s      *Server
	r      *http.Request
	number int64
	over   <-chan time.Time // when it has lasted long enough
	asked  time.Time        // when it was asked last whether it may look
	at     place
	sink   eventSink
}

// watch sends frames until the connection ends, or must.
func (v *viewer) watch(ctx context.Context, cut bool) {
	var err error
	if cut {
		err = v.sink.send(ctx, "", eventDropped, reasonJSON("no event was read for 10 seconds, so the connection was closed: the events until now are left out"))
	}
	for err == nil {
		err = v.step(ctx)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errUnread):
		v.s.hub.cutOff(v.number)
		v.s.cfg.Log.Info("httpapi: a viewer of events does not read: cut off", "request_id", problem.InfoOf(v.r).ID)
	case errors.Is(err, errEnds):
		v.sink.end(ctx, strings.TrimPrefix(err.Error(), errEnds.Error()+": "))
	}
}

var (
	errEnds   = errors.New("httpapi: events end")
	errUnread = errors.New("httpapi: a viewer does not read")
)

// step sends a frame once there is one.
func (v *viewer) step(ctx context.Context) error {
	woken := v.s.hub.woken()
	f := v.s.hub.frame(v.at)
	if f == nil {
		return v.wait(ctx, woken)
	}
	v.at = f.to
	if err := v.sink.send(ctx, v.s.hub.id(v.number, v.at), eventUpdate, f.data); err != nil {
		return err
	}
	pause := time.NewTimer(frameEvery)
	defer pause.Stop()
	_, err := v.until(ctx, nil, pause.C)
	return err
}

// until waits for something, unless the connection ends, or must.
func (v *viewer) until(ctx context.Context, woken <-chan struct{}, timer <-chan time.Time) (isWoken bool, err error) {
	select {
	case <-woken:
		return true, nil
	case <-timer:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-v.over:
		return false, fmt.Errorf("%w: connect again to go on", errEnds)
	case <-v.s.stopping:
		return false, fmt.Errorf("%w: this sidecar stops", errEnds)
	}
}

// wait waits for another frame, and keeps the connection meanwhile.
func (v *viewer) wait(ctx context.Context, woken <-chan struct{}) error {
	ping := time.NewTicker(v.s.times.ping)
	defer ping.Stop()
	for {
		if is, err := v.until(ctx, woken, ping.C); is || err != nil {
			return err
		}
		if err := errors.Join(v.mayStill(), v.sink.ping(ctx)); err != nil {
			return err
		}
	}
}

// mayStill ends the events of somebody who may not look any more.
func (v *viewer) mayStill() error {
	if time.Since(v.asked) < v.s.times.askWho {
		return nil
	}
	v.asked = time.Now()
	if !v.s.auth.MayStillRead(v.r) {
		return fmt.Errorf("%w: sign in again", errEnds)
	}
	return nil // whoever cannot be asked now may as before
}

func reasonJSON(reason string) []byte {
	data, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil { // a text
		panic(err)
	}
	return data
}

// stream sends server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

func (v *viewer) openStream(w http.ResponseWriter) {
	out := &stream{w: w, control: http.NewResponseController(w), within: v.s.times.taken}
	_ = out.control.SetReadDeadline(time.Time{}) // there is nothing more to read, and that must not end the request
	h := w.Header()
	h.Set(echo.HeaderContentType, eventStream)
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	v.sink = out
	_ = out.write(fmt.Sprintf("retry: %d\n\n", eventsRetryMS))
}

func (o *stream) send(_ context.Context, id, event string, data []byte) error {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return o.write(id + "event: " + event + "\ndata: " + string(data) + "\n\n") // JSON of ours has no line ends
}

func (o *stream) ping(context.Context) error { return o.write(":\n\n") }

func (o *stream) end(ctx context.Context, reason string) {
	_ = o.send(ctx, "", eventEnd, reasonJSON(reason))
}

func (o *stream) write(text string) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.within)) // not every writer has one
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}
