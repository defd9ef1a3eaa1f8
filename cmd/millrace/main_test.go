package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// asMain makes this test binary be millrace itself, for the test that needs a process.
const asMain = "MILLRACE_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	for _, setting := range os.Environ() { // the settings of whoever runs the tests are none of theirs
		name, _, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "MILLRACE_") && !strings.HasPrefix(name, "MILLRACE_TEST_") {
			os.Unsetenv(name)
		}
	}
	brokertest.Main(m)
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// millrace runs a command line.
func millrace(t *testing.T, args ...string) result {
	t.Helper()
	return millraceIn(t.Context(), args...)
}

func millraceIn(ctx context.Context, args ...string) result {
	var out, err bytes.Buffer
	code := execute(ctx, args, &out, &err)
	return result{code, out.String(), err.String()}
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
