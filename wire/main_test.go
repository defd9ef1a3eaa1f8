package wire

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for the largest record on a slow machine under the race detector. Anything that is not linear takes hours.
const patience = 10 * time.Second
