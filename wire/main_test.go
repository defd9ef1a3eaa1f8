package wire

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is not a measure of speed. It ends a test that would take hours because something is not
// linear.
const patience = 3 * time.Minute
