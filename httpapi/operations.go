package httpapi

import (
	"net/http"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/httpapi/prom"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// operationsAPI begins, shows and cancels operations: commands for many entries.
type operationsAPI struct {
	operations   *tracker.BulkOperations
	fingerprints *fingerprints
	leader       *leader
	requests     *prom.Requests
}

// operation returns the answer about an operation.
func (f *fingerprints) operation(op *wire.Operation) answer.Operation {
	o := answer.Operation{ID: op.ID, Action: op.Action, Filter: op.Filter, AsOf: op.AsOf, Expected: op.Expected, At: op.At, Rate: op.Rate,
		Reason: op.Reason, Actor: op.Actor, State: op.State, StartedAt: op.StartedAt, EndedAt: op.EndedAt, Done: op.Done,
		Failed: op.Failed, LastError: op.LastError, Undoes: op.Undoes, UndoneBy: op.UndoneBy, Skips: op.Skips}
	o.Set = setOf(op.Stream)
	if op.Filter == nil || op.Expected != nil {
		o.Total = &op.Total
	}
	if op.Filter != nil {
		o.Failure = f.named(op.Filter.Error)
	}
	if op.Action == wire.CommandUndo {
		skipped := op.Skipped()
		o.Skipped = &skipped
	}
	return o
}

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
func (a *operationsAPI) create(in *problem.Request) error {
	in.Query()
	var body operationRequest
	in.Body(&body)
	op := &wire.Operation{Action: body.Action, JIDs: body.JIDs, Filter: (*wire.Filter)(body.Filter), AsOf: body.AsOf, Expected: body.Expected, At: body.At}
	for _, set := range entrySets {
		if set.path == body.Set {
			op.Stream = set.stream
		}
	}
	if op.Stream == "" {
		in.BadRequest("set is %q: it must be scheduled-jobs, retries, dead-jobs or gated-jobs", problem.Shorten(body.Set))
	}
	if op.Action == wire.CommandUndo {
		in.BadRequest("undo is asked for at /api/operations/:id/undo")
	}
	return a.begin(in, op, body.Rate, body.Reason)
}

// begin makes the leader begin an operation.
func (a *operationsAPI) begin(in *problem.Request, op *wire.Operation, rate *float64, reason string) error {
	if rate != nil {
		if op.Rate = *rate; op.Rate <= 0 {
			in.BadRequest("rate must be a number above 0: entries a second")
		}
	}
	if err := op.Check(); err != nil {
		in.BadRequest("%s", err)
	}
	cmd := sign(in, wire.Command{Command: wire.CommandOperate, Bulk: op, Reason: reason})
	if in.Err() != nil {
		return in.Err()
	}
	_, p := a.leader.send(in, cmd)
	result := "begun"
	if p != nil {
		result = p.Code
	}
	a.requests.Operation(op.Action, result, string(auth.PrincipalOf(in.Request()).Role))
	if p != nil {
		return p
	}
	// The client must find it.
	a.leader.readBack(in.Request().Context(), readBackLimit, func() bool {
		_, known := a.operations.Operation(cmd.ID)
		return known
	})
	in.Response().Header().Set("Location", "/api/operations/"+cmd.ID)
	return in.JSON(http.StatusAccepted, answer.BegunOperation{ID: cmd.ID, Action: op.Action, Undoes: op.Undoes})
}

// undo begins an operation that takes back what another did.
func (a *operationsAPI) undo(in *problem.Request) error {
	id := in.PathParam("id")
	in.Query()
	var body struct {
		Rate   *float64 `json:"rate"`
		Reason string   `json:"reason"`
	}
	in.Body(&body)
	return a.begin(in, &wire.Operation{Action: wire.CommandUndo, Undoes: id}, body.Rate, body.Reason)
}

func (a *operationsAPI) list(in *problem.Request) (any, error) {
	in.Query()
	all := []answer.Operation{}
	for _, op := range a.operations.Operations() {
		all = append(all, a.fingerprints.operation(&op))
	}
	return all, nil
}

func (a *operationsAPI) show(in *problem.Request) (any, error) {
	id := in.PathParam("id")
	in.Query()
	op, known := a.operations.Operation(id)
	if !known {
		return nil, problem.New(http.StatusNotFound, "no operation has this id: those that run are known, and the newest 100 that have ended")
	}
	return a.fingerprints.operation(&op), nil
}

// cancel ends an operation where it is.
func (a *operationsAPI) cancel(in *problem.Request) error {
	id := in.PathParam("id")
	in.Query()
	return a.leader.do(in, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: id}, Reason: readReason(in)})
}

type strictFilter wire.Filter

func (f *strictFilter) UnmarshalJSON(raw []byte) error {
	return problem.DecodeStrict(raw, (*wire.Filter)(f))
}
