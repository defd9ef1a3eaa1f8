package httpapi

import (
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
		over := h.IsPeriod() && h.Until <= a.now().UnixMicro()
		if !over && (jid == "" || h.JID == wire.JIDTag(jid)) {
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
