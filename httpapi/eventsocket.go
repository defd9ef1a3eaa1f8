package httpapi

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

// asksForSocket tells whether a request asks for a WebSocket.
func asksForSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// checkSocket refuses what cannot be a WebSocket, and pages of other sites: browsers let them ask for one, with the user's cookies.
func (s *Server) checkSocket(r *http.Request) error {
	if !strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") || r.Header.Get("Sec-WebSocket-Version") != "13" ||
		r.Header.Get("Sec-WebSocket-Key") == "" || r.ProtoMajor != 1 || r.Method != http.MethodGet {
		return problem.BadRequest("this is no request for a WebSocket of version 13")
	}
	return s.origins.CheckRead(r)
}

// socket sends events as WebSocket messages.
type socket struct {
	conn   *websocket.Conn
	within time.Duration
}

// openSocket makes a WebSocket of the connection. The context that it gives ends when the viewer goes.
func (v *viewer) openSocket(ctx context.Context, w http.ResponseWriter) (context.Context, error) {
	control := http.NewResponseController(w)
	_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
	conn, err := websocket.Accept(w, v.r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, err
	}
	v.sink = socket{conn, v.s.times.taken}
	return conn.CloseRead(ctx), nil // answers pings; whatever else a viewer says ends the connection
}

// send writes the message around data as it is: to have it read and written again for each viewer would take longer than all else of it.
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
