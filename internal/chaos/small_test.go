package chaos

import (
	"testing"
	"time"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// seed is the seed of the scenarios in `make test`, which are small. It is fixed, so that a failure
// comes from the code.
const seed = 20261120

func TestSidecarKilled(t *testing.T) {
	w := begin(t, brokertest.New(t), seed)
	sidecarKilled(w, 10_000, 10, true)
	t.Logf("%d of %d kills fell while fires were unconfirmed, %d while catching up or settling", w.unconfirmed, w.faults, w.settling)
}

func TestBrokerKilled(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	brokerKilled(w, 4_000, 2)
	t.Log(w.note)
}

func TestStandbyTakesOver(t *testing.T) {
	w := begin(t, brokertest.New(t), seed)
	standby(w, 3_000, 2)
	t.Log(w.note)
}

func TestDelayedMessages(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	delayedMessages(w, 2_000, 1, 8*time.Second, 4*time.Second)
	t.Log(w.note)
}
