package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// memberOnce is the key of a job in an array, as headerOnce is of a single one.
const memberOnce = "idempotency_key"

// maxOnce is the largest job that can be enqueued under a key, in bytes: it goes to the leader in a command.
const maxOnce = 1<<20 - 64<<10

// enqueueKeyed publishes a job as a producer does; under a key, the leader does, and once.
func (s *Server) enqueueKeyed(ctx context.Context, raw []byte, key, actor string) (jid string, err error) {
	if key == "" {
		return s.enqueueOne(ctx, raw)
	}
	return s.enqueueOnce(ctx, raw, key, actor)
}

func (s *Server) enqueueOnce(ctx context.Context, raw []byte, key, actor string) (jid string, err error) {
	if len(raw) > maxOnce {
		return "", problem.New(http.StatusRequestEntityTooLarge, "a job that is enqueued under a key has at most %d bytes", maxOnce)
	}
	if _, err := s.jobMessage(raw); err != nil {
		return "", err
	}
	at, timed, err := timeOf(raw)
	if err != nil {
		return "", err
	}
	cmd := wire.Command{Command: wire.CommandEnqueue, Key: key, Job: raw, Actor: actor}
	if timed {
		cmd.At = &at
	}
	body, err := json.Marshal(cmd)
	if err == nil {
		_, err = wire.ParseCommand(body)
	}
	if err != nil {
		return "", problem.BadRequest("%s", problem.Shorten(err.Error()))
	}
	reply := s.cfg.Ask(ctx, cmd)
	if p := problem.FromReply(reply); p != nil {
		return "", p
	}
	return reply.JID, nil
}

// keyIn takes the key out of a job in an array.
func keyIn(raw []byte) (job []byte, key string, err error) {
	given := gjson.GetBytes(raw, memberOnce)
	if !given.Exists() {
		return raw, "", nil
	}
	if given.Type != gjson.String || given.String() == "" {
		return nil, "", problem.BadRequest("member %s must be a text", memberOnce)
	}
	job, err = sjson.DeleteBytes(raw, memberOnce)
	if err != nil {
		return nil, "", problem.BadRequest("member %s cannot be read: %s", memberOnce, problem.Shorten(err.Error()))
	}
	return job, given.String(), nil
}
