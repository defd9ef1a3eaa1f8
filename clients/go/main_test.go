package millrace

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) {
	// A proxy that is cut while it hands bytes on leaves its own goroutine behind: toxiproxy's, not ours.
	brokertest.Main(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}
