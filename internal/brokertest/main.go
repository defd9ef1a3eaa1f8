package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// shared is the broker of this test process.
var shared struct {
	sync.Mutex
	server *server
	// err says why there is no broker. It is kept, so that only the first test waits for a start
	// that fails.
	err error
}

// startLimit limits the start of the shared broker, which may have to pull an image.
const startLimit = 5 * time.Minute

// Main runs the tests of a package and stops their shared broker. It fails if a goroutine is left
// behind.
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(runner{m}, append(leftByProxies(), options...)...)
}

// leftByProxies ignores goroutines that toxiproxy never ends: those of connections that ended while
// their data was held up. They belong to the faults, and not to the code under test.
func leftByProxies() []goleak.Option {
	var all []goleak.Option
	for _, function := range []string{".(*ToxicCollection).ResetToxics", ".(*ToxicLink).read", ".(*ToxicLink).write", ".(*ToxicLink).RemoveToxic", ".(*Proxy).server",
		".(*Proxy).freeBlocker", ".(*Proxy).Stop", "/toxics.(*ToxicStub).Run", "/toxics.(*ToxicStub).InterruptToxic"} {
		all = append(all, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2"+function))
	}
	return all
}

// runner stops the broker before goleak looks for goroutines, because those of the broker's
// processes are no leak.
type runner struct{ tests goleak.TestingM }

func (r runner) Run() int {
	code := r.tests.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

func sharedServer(t testing.TB) *server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		// Not the test's context: the broker outlives the test that needs it first.
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		shared.server, shared.err = findServer(ctx)
	}
	if shared.err != nil {
		t.Fatalf("brokertest: no broker for the tests: %v", shared.err)
	}
	return shared.server
}

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	server := shared.server
	shared.server, shared.err = nil, errors.New("the tests are over")
	if server == nil {
		return nil
	}
	return server.close()
}
