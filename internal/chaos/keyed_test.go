package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// keyed enqueues jobs with idempotency keys, and repeats that at random. Each key stands for one
// job, which arrives once.
type keyed struct {
	w      *world
	broken *faults

	mu    sync.Mutex
	jids  map[string]string // by key
	asked int
}

func (k *keyed) work(ctx context.Context, c *caller, hand int) {
	var mine []string
	for n := 0; ctx.Err() == nil; k.w.pause(20 * time.Millisecond) {
		if len(mine) > 0 && c.chance(50) {
			k.enqueue(c, mine[c.random.IntN(len(mine))])
			continue
		}
		key := fmt.Sprintf("key-%d-%d", hand, n)
		n++
		if k.enqueue(c, key) {
			mine = append(mine, key)
		}
	}
}

// enqueue enqueues the job of a key, with either form of the call. A key always has the same job.
func (k *keyed) enqueue(c *caller, key string) bool {
	body := fmt.Sprintf(`{"class":"Keyed","args":[%q],"queue":%q}`, key, queues[len(key)%len(queues)])
	began := time.Now()
	var status, repeated int
	var answer []byte
	var got []struct{ JID, Error string }
	if c.chance(50) {
		status, answer, repeated = c.call(http.MethodPost, "/api/jobs", body, "Idempotency-Key", key)
		got = append(got, struct{ JID, Error string }{})
		_ = json.Unmarshal(answer, &got[0])
	} else {
		// A call for several jobs may be answered while the result for each is unknown.
		for deadline := time.Now().Add(patient); ; k.w.pause(100 * time.Millisecond) {
			var more int
			status, answer, more = c.call(http.MethodPost, "/api/jobs", fmt.Sprintf(`[%s,"idempotency_key":%q}]`, body[:len(body)-1], key))
			repeated += more + 1
			got = nil
			_ = json.Unmarshal(answer, &got)
			if len(got) != 1 || time.Now().After(deadline) || !slices.Contains([]string{"no_leader", "outcome_unknown", "service_unavailable"}, got[0].Error) {
				repeated--
				break
			}
		}
	}
	if status >= 300 || len(got) != 1 || got[0].JID == "" {
		k.broken.note("%s is answered %d %s", key, status, answer)
		return false
	}
	k.keep(key, got[0].JID, began, 1+repeated)
	return true
}

// keep opens the account of a new job, or compares the job with its account.
func (k *keyed) keep(key, jid string, since time.Time, times int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked += times
	if known := k.jids[key]; known != "" {
		if known != jid {
			k.broken.note("%s is %s and %s", key, known, jid)
		}
		return
	}
	k.jids[key] = jid
	k.w.open(jid, wire.ScheduledJobs, "", since, comes)
}

// again enqueues the job of every key once more, and other jobs with some of the keys.
func (k *keyed) again(c *caller) {
	for key := range k.jids {
		k.enqueue(c, key)
	}
	for key := range k.jids {
		status, answer, _ := c.call(http.MethodPost, "/api/jobs", `{"class":"Other"}`, "Idempotency-Key", key)
		if status != http.StatusConflict {
			k.broken.note("another job under %s is answered %d %s", key, status, answer)
		}
		break
	}
}

func (k *keyed) String() string {
	return fmt.Sprintf("%d keys asked for %d times", len(k.jids), k.asked)
}
