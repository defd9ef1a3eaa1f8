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
	err    error // why there is none; kept, so that only the first test waits for a start that fails
}

// startLimit bounds the start of the shared broker: a container's image may have to be pulled.
const startLimit = 5 * time.Minute

// Main runs the tests of a package, stops the broker that they shared and then fails if a goroutine
// is left behind.
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(runner{m}, append(leftByProxies(), options...)...)
}

// leftByProxies are goroutines that toxiproxy never ends: those of connections that ended while their data was held up. They are the
// faults', not those of what is tested.
func leftByProxies() []goleak.Option {
	var all []goleak.Option
	for _, function := range []string{".(*ToxicCollection).ResetToxics", ".(*ToxicLink).read", ".(*ToxicLink).write", ".(*ToxicLink).RemoveToxic", ".(*Proxy).server",
		".(*Proxy).freeBlocker", ".(*Proxy).Stop", "/toxics.(*ToxicStub).Run", "/toxics.(*ToxicStub).InterruptToxic"} {
		all = append(all, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2"+function))
	}
	return all
}

// runner stops the broker between the tests and the search for goroutines: those of its processes
// are no leak.
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
		// Not the test's context: the broker outlives the test that happens to need it first.
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
