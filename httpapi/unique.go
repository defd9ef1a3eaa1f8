package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// uniqueAPI shows which jobs have the keys of unique jobs.
type uniqueAPI struct {
	keys   tracker.UniqueKeys
	leader *leader
	now    func() time.Time
}

// mostKeys is how many holds of keys are listed.
const mostKeys = 1000

// list lists what holds keys: of one key, of a job, or of all.
func (a *uniqueAPI) list(in *problem.Request) (any, error) {
	in.Query("key", "hash", "jid")
	key, hash, jid := in.Text("key"), in.Text("hash"), in.Text("jid")
	all := []answer.UniqueKey{}
	take := func(h *tracker.KeyHold) bool {
		if (jid == "" || h.JID == wire.JIDTag(jid)) && !(h.IsPeriod() && h.Until <= a.now().UnixMicro()) {
			all = append(all, newUniqueKey(h))
		}
		return len(all) < mostKeys
	}
	if key != "" {
		hash = wire.UniqueKey(key).Hash()
	}
	if hash == "" {
		return all, a.keys.Each(take)
	}
	holds, err := a.keys.Holds(hash)
	for _, h := range holds {
		take(h)
	}
	return all, err
}

func newUniqueKey(h *tracker.KeyHold) answer.UniqueKey {
	k := answer.UniqueKey{Hash: h.Key.Hash(), Key: h.Key.Given(), JID: h.JID, Since: seconds(h.Since), Until: seconds(h.Until)}
	switch {
	case h.IsPeriod():
		k.State = "period"
	case h.Slot:
		k.State = "delivered"
	case h.Stream == wire.Retries:
		k.State = "retry"
	default:
		k.State = "waiting"
	}
	return k
}

func seconds(micros int64) float64 { return float64(micros) / 1e6 }

// free ends that a key is taken for a time.
func (a *uniqueAPI) free(in *problem.Request) error {
	hash := in.PathParam("hash")
	in.Query()
	cmd := wire.Command{Command: wire.CommandFreeKey, Key: hash, Reason: readReason(in)}
	if err := checkCommand(in, cmd); err != nil {
		return err
	}
	if _, p := a.leader.send(in, sign(in, cmd)); p != nil {
		return p
	}
	return nil
}

// decisionWait is how long a request waits for the leader to decide about unique jobs.
const decisionWait = 5 * time.Second

// publishUnique publishes a unique job, and waits for the decision whether it has its key.
func (e *enqueueAPI) publishUnique(ctx, wait context.Context, m wire.Message, jid string) (answer.Enqueued, error) {
	decided, stop := e.await(jid)
	defer stop()
	if err := e.publishOne(ctx, m); err != nil {
		return answer.Enqueued{}, err
	}
	select {
	case d := <-decided:
		if d.Outcome == wire.UniqueDuplicate {
			return answer.Enqueued{JID: d.Of, DuplicateOf: d.Of}, nil
		}
		return answer.Enqueued{JID: jid}, nil
	case <-wait.Done():
		return answer.Enqueued{JID: jid, Undecided: true}, nil
	}
}

// statusOf returns the status of the answer about one job.
func statusOf(e *answer.Enqueued) int {
	switch {
	case e.Undecided:
		return http.StatusAccepted
	case e.DuplicateOf != "":
		return http.StatusOK
	}
	return http.StatusCreated
}

// forLater returns a unique job with the time at which it is due. It goes to jobs.gated in any case.
func forLater(job *wire.Job, body []byte, at float64) ([]byte, error) {
	if !job.GateAt.IsZero() {
		return body, nil
	}
	body, err := wire.SetRaw(body, "gate.at", secondsText(at))
	if err == nil {
		_, err = wire.ParseJob(body)
	}
	return body, err
}
