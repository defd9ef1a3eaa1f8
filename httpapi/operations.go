package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/httpapi/prom"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// operationsAPI begins, shows and cancels operations: commands for many entries.
type operationsAPI struct {
	entries  *tracker.Entries
	leader   *leader
	requests *prom.Requests
}

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
	Filter   *strictFilter `json:"filter"`
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

// create makes the leader do something to many entries. The answer comes once that has begun.
func (a *operationsAPI) create(c echo.Context) error {
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
	return a.begin(c, op, body.Rate, body.Reason)
}

// begunOperation is the answer once an operation has begun.
type begunOperation struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Undoes string `json:"undoes,omitempty"`
}

// begin makes the leader begin an operation.
func (a *operationsAPI) begin(c echo.Context, op *wire.Operation, rate *float64, reason string) error {
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
	_, p := a.leader.send(c, cmd)
	result := "begun"
	if p != nil {
		result = p.Code
	}
	a.requests.Operation(op.Action, result, string(auth.PrincipalOf(c.Request()).Role))
	if p != nil {
		return p
	}
	a.leader.readBack(c.Request().Context(), readBackLimit, func() bool { // so that the client finds it
		_, known := a.entries.Operation(cmd.ID)
		return known
	})
	c.Response().Header().Set("Location", "/api/operations/"+cmd.ID)
	return c.JSON(http.StatusAccepted, begunOperation{cmd.ID, op.Action, op.Undoes})
}

// undo begins an operation that takes back what another did.
func (a *operationsAPI) undo(c echo.Context) error {
	id, err := problem.OnlyPathParam(c, "id")
	if err != nil {
		return err
	}
	var body struct {
		Rate   *float64 `json:"rate"`
		Reason string   `json:"reason"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	return a.begin(c, &wire.Operation{Action: wire.CommandUndo, Undoes: id}, body.Rate, body.Reason)
}

func (a *operationsAPI) list(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	all := []operation{}
	for _, op := range a.entries.Operations() {
		all = append(all, newOperation(&op))
	}
	return c.JSON(http.StatusOK, all)
}

func (a *operationsAPI) show(c echo.Context) error {
	id, err := problem.OnlyPathParam(c, "id")
	if err != nil {
		return err
	}
	op, known := a.entries.Operation(id)
	if !known {
		return problem.New(http.StatusNotFound, "no operation has this id: those that run are known, and the newest 100 that have ended")
	}
	return c.JSON(http.StatusOK, newOperation(&op))
}

// cancel ends an operation where it is.
func (a *operationsAPI) cancel(c echo.Context) error {
	id, err := problem.OnlyPathParam(c, "id")
	if err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	return a.leader.do(c, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: id}, Reason: reason})
}

// strictFilter is the filter of a request.
type strictFilter wire.Filter

func (f *strictFilter) UnmarshalJSON(raw []byte) error {
	return problem.DecodeStrict(raw, (*wire.Filter)(f))
}
