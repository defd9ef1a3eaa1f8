package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/wire"
)

// decisionWait is how long a request waits for the leader to decide about unique jobs.
const decisionWait = 5 * time.Second

// decisionOf waits for the decision whether a unique job has its key.
func decisionOf(wait context.Context, decided <-chan wire.Decision, jid string) answer.Enqueued {
	select {
	case d := <-decided:
		if d.Outcome == wire.UniqueDuplicate {
			return answer.Enqueued{JID: d.Of, DuplicateOf: d.Of}
		}
		return answer.Enqueued{JID: jid}
	case <-wait.Done():
		return answer.Enqueued{JID: jid, Undecided: true}
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
