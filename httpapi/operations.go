package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// operation is an operation as clients see it.
type operation struct {
	ID       string       `json:"id"`
	Action   string       `json:"action"`
	Set      string       `json:"set"`
	Filter   *wire.Filter `json:"filter,omitempty"`
	AsOf     *int64       `json:"as_of,omitempty"`
	Expected *int64       `json:"expected_count,omitempty"`
	At       *float64     `json:"at,omitempty"`
	Rate     float64      `json:"rate,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Actor    string       `json:"actor,omitempty"`
	Undoes   string       `json:"undoes,omitempty"`
	UndoneBy string       `json:"undone_by,omitempty"`

	State     string  `json:"state"`
	StartedAt float64 `json:"started_at"`
	EndedAt   float64 `json:"ended_at,omitempty"`
	Total     *int64  `json:"total,omitempty"` // where it was counted
	Done      int64   `json:"done"`
	Failed    int64   `json:"failed"`
	LastError string  `json:"last_error,omitempty"`

	Skipped *int64      `json:"skipped,omitempty"` // of an undo
	Skips   []wire.Skip `json:"skips,omitempty"`
}

func newOperation(op *wire.Operation) operation {
	o := operation{ID: op.ID, Action: op.Action, Filter: op.Filter, AsOf: op.AsOf, Expected: op.Expected, At: op.At, Rate: op.Rate,
		Reason: op.Reason, Actor: op.Actor, State: op.State, StartedAt: op.StartedAt, EndedAt: op.EndedAt, Done: op.Done,
		Failed: op.Failed, LastError: op.LastError, Undoes: op.Undoes, UndoneBy: op.UndoneBy, Skips: op.Skips}
	o.Set = setOf(op.Stream)
	if op.Filter == nil || op.Expected != nil {
		o.Total = &op.Total
	}
	if op.Action == wire.CommandUndo {
		skipped := op.Skipped()
		o.Skipped = &skipped
	}
	return o
}

// operationRequest is what a client asks for.
type operationRequest struct {
	Action   string        `json:"action"`
	Set      string        `json:"set"`
	JIDs     []string      `json:"jids"`
	Filter   *statedFilter `json:"filter"`
	AsOf     *int64        `json:"as_of"`
	Expected *int64        `json:"expected_count"`
	At       *float64      `json:"at"`
	Rate     *float64      `json:"rate"`
	Reason   string        `json:"reason"`
}

func (r *operationRequest) UnmarshalJSON(raw []byte) error {
	type plain operationRequest
	return problem.DecodeStrict(raw, (*plain)(r), "reason")
}

// operate has the leader do something to many entries. It is answered once that has begun.
func (s *Server) operate(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	var body operationRequest
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	op := &wire.Operation{Action: body.Action, JIDs: body.JIDs, Filter: (*wire.Filter)(body.Filter), AsOf: body.AsOf, Expected: body.Expected, At: body.At}
	for _, set := range entrySets {
		if set.path == body.Set {
			op.Stream = set.stream
		}
	}
	if op.Stream == "" {
		return problem.BadRequest("set is %q: it must be scheduled-jobs, retries, dead-jobs or gated-jobs", problem.Shorten(body.Set))
	}
	if op.Action == wire.CommandUndo {
		return problem.BadRequest("undo is asked for at /api/operations/:id/undo")
	}
	return s.begin(c, op, body.Rate, body.Reason)
}

// begunOperation answers that one has begun.
type begunOperation struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Undoes string `json:"undoes,omitempty"`
}

// begin has the leader begin an operation.
func (s *Server) begin(c echo.Context, op *wire.Operation, rate *float64, reason string) error {
	if rate != nil {
		if op.Rate = *rate; op.Rate <= 0 {
			return problem.BadRequest("rate must be a number above 0: entries a second")
		}
	}
	if err := op.Check(); err != nil {
		return problem.BadRequest("%s", err)
	}
	cmd, err := sign(c, wire.Command{Command: wire.CommandOperate, Bulk: op, Reason: reason})
	if err != nil {
		return err
	}
	p := s.send(c, cmd)
	result := "begun"
	if p != nil {
		result = p.Code
	}
	s.exporter.Requests.Operation(op.Action, result, string(auth.PrincipalOf(c.Request()).Role))
	if p != nil {
		return p
	}
	s.readBack(c.Request().Context(), readBackWithin, func() bool { // so that who asks for it next finds it
		_, known := s.cfg.Entries.Operation(cmd.ID)
		return known
	})
	c.Response().Header().Set("Location", "/api/operations/"+cmd.ID)
	return c.JSON(http.StatusAccepted, begunOperation{cmd.ID, op.Action, op.Undoes})
}

// undoOperation begins to take back what an operation did: an operation of its own.
func (s *Server) undoOperation(c echo.Context) error {
	id, err := problem.PathParam(c, "id")
	if err != nil {
		return err
	}
	if err := problem.NoParams(c); err != nil {
		return err
	}
	var body struct {
		Rate   *float64 `json:"rate"`
		Reason string   `json:"reason"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	return s.begin(c, &wire.Operation{Action: wire.CommandUndo, Undoes: id}, body.Rate, body.Reason)
}

func (s *Server) listOperations(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	all := []operation{}
	for _, op := range s.cfg.Entries.Operations() {
		all = append(all, newOperation(&op))
	}
	return c.JSON(http.StatusOK, all)
}

func (s *Server) showOperation(c echo.Context) error {
	id, err := problem.PathParam(c, "id")
	if err != nil {
		return err
	}
	if err := problem.NoParams(c); err != nil {
		return err
	}
	op, known := s.cfg.Entries.Operation(id)
	if !known {
		return problem.New(http.StatusNotFound, "no operation has this id: those that run are known, and the newest 100 that have ended")
	}
	return c.JSON(http.StatusOK, newOperation(&op))
}

// cancelOperation ends an operation where it is.
func (s *Server) cancelOperation(c echo.Context) error {
	id, err := problem.PathParam(c, "id")
	if err != nil {
		return err
	}
	if err := problem.NoParams(c); err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	return s.ask(c, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: id}, Reason: reason})
}

// statedFilter is the filter of a request.
type statedFilter wire.Filter

func (f *statedFilter) UnmarshalJSON(raw []byte) error {
	return problem.DecodeStrict(raw, (*wire.Filter)(f))
}
