package wire

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is no measure of speed: it ends a test that would else run for hours, as anything that is not linear would here.
const patience = 3 * time.Minute
