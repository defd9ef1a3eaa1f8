package live

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	eventStream = "text/event-stream"
	retryMS     = 2000 // when a browser comes back
)

// stream sends server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

func openStream(w http.ResponseWriter, within time.Duration) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), within: within}
	_ = s.control.SetReadDeadline(time.Time{}) // nothing more is read
	h := w.Header()
	h.Set(echo.HeaderContentType, eventStream)
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	_ = s.write(fmt.Sprintf("retry: %d\n\n", retryMS))
	return s
}

func (s *stream) send(_ context.Context, id, event string, data []byte) error {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return s.write(id + "event: " + event + "\ndata: " + string(data) + "\n\n")
}

func (s *stream) ping(context.Context) error { return s.write(":\n\n") }

func (s *stream) end(ctx context.Context, reason string) {
	_ = s.send(ctx, "", eventEnd, reasonJSON(reason))
}

func (s *stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.within)) // not every writer has one
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
