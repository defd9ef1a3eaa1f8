package httpapi

import (
	"cmp"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/wire"
)

// typeMove is a move of a queue to another type, as clients see it.
type typeMove struct {
	*wire.TypeMove

	Processes []string `json:"processes"` // live ones that say that they consume it
}

// moveTypeRequest is what a client asks for.
type moveTypeRequest struct {
	Type    string   `json:"type"`
	DryRun  bool     `json:"dry_run"`
	ID      string   `json:"id"`
	Timeout *float64 `json:"timeout_s"`
	Reason  string   `json:"reason"`
}

func (r *moveTypeRequest) UnmarshalJSON(raw []byte) error {
	type plain moveTypeRequest
	return problem.DecodeStrict(raw, (*plain)(r), "reason")
}

var errNoMove = errors.New("httpapi: the answer to a move has no move")

// moveType has the leader move a queue to another type, or say what that would do. It is answered once that has begun: repeating it with
// the id that was answered follows the move.
func (s *Server) moveType(c echo.Context) error {
	name, err := queueOf(c)
	if err != nil {
		return err
	}
	var body moveTypeRequest
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	if body.Type != wire.QueueClassic && body.Type != wire.QueueQuorum {
		return problem.BadRequest("type is %q: it must be %s or %s", problem.Shorten(body.Type), wire.QueueClassic, wire.QueueQuorum)
	}
	if body.ID != wire.ASCII(body.ID) {
		return problem.BadRequest("id must be printable ASCII of at most 255 characters")
	}
	cmd := wire.Command{Command: wire.CommandMoveType, Queue: name, Type: body.Type, DryRun: body.DryRun, Reason: body.Reason}
	if body.Timeout != nil {
		cmd.Within = *body.Timeout
		if least, most := wire.MoveWithinLeast.Seconds(), wire.MoveWithinMost.Seconds(); cmd.Within < least || cmd.Within > most {
			return problem.BadRequest("timeout_s must be from %.0f to %.0f", least, most)
		}
	}
	if cmd, err = sign(c, cmd); err != nil {
		return err
	}
	cmd.ID = cmp.Or(body.ID, cmd.ID)
	reply, p := s.sendFor(c, cmd)
	if p != nil {
		return p
	}
	if reply.Move == nil {
		return problem.Unavailable(errNoMove, "nothing was done: the leader does not say what it does")
	}
	if s.cfg.Queues != nil && !body.DryRun {
		s.cfg.Queues.Forget()
	}
	return c.JSON(reply.Status, typeMove{reply.Move, s.consuming(name)})
}

// consuming lists the live processes that say that they consume a queue.
func (s *Server) consuming(queue string) []string {
	identities := []string{}
	all := s.processes()
	for i := range all {
		if _, does := processes.Serving(all[i : i+1])[queue]; does {
			identities = append(identities, all[i].Identity)
		}
	}
	return identities
}
