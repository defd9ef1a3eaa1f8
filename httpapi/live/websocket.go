package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

func wantsSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// checkSocket refuses a request that cannot become a WebSocket.
func checkSocket(in *problem.Request) {
	r := in.Request()
	if !strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") || r.Header.Get("Sec-WebSocket-Version") != "13" ||
		r.Header.Get("Sec-WebSocket-Key") == "" || r.ProtoMajor != 1 || r.Method != http.MethodGet {
		in.BadRequest("this is no request for a WebSocket of version 13")
	}
}

// socket sends events as WebSocket messages.
type socket struct {
	conn   *websocket.Conn
	within time.Duration
}

// openSocket makes a WebSocket of the connection. Its context ends when the viewer leaves.
func openSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, within time.Duration) (sink, context.Context, error) {
	control := http.NewResponseController(w)
	_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, nil, err
	}
	return socket{conn, within}, conn.CloseRead(ctx), nil // answers pings
}

// send writes the message around the data, which it does not decode and encode again: that would
// cost more, for each viewer, than everything else.
func (s socket) send(ctx context.Context, id, event string, data []byte) error {
	if id != "" {
		id = fmt.Sprintf(`"id":%q,`, id)
	}
	text := fmt.Appendf(nil, `{%s"event":%q,"data":%s}`, id, event, data)
	return s.limited(ctx, func(ctx context.Context) error { return s.conn.Write(ctx, websocket.MessageText, text) })
}

func (s socket) ping(ctx context.Context) error { return s.limited(ctx, s.conn.Ping) }

func (s socket) limited(ctx context.Context, do func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	err := do(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return errUnread
	}
	return err
}

func (s socket) end(ctx context.Context, reason string) {
	_ = s.send(ctx, "", eventEnd, reasonJSON(reason))
	_ = s.conn.Close(websocket.StatusGoingAway, reason)
}
