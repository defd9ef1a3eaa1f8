package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// asMain makes this test binary be millrace itself, for the test that needs a process.
const asMain = "MILLRACE_TEST_AS_MAIN"

// forRace are the tests that the race detector is for: those of commands that run until they are stopped. Parsing a command line takes a
// second under it, and happens in one goroutine.
const forRace = `^Test(Serve|Sidecar|Sessions|Up|Worker|Looks|StreamListener)`

// envRaced is set where these have been run with the race detector already.
const envRaced = "MILLRACE_TEST_RACED"

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
	flag.Parse()
	if run := flag.Lookup("test.run"); raced && run.Value.String() == "" {
		_ = run.Value.Set(forRace)
	}
	if skip := flag.Lookup("test.skip"); !raced && os.Getenv(envRaced) != "" && skip.Value.String() == "" {
		_ = skip.Value.Set(forRace)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	code := execute(ctx, args, &out, &err)
	return result{code, out.String(), err.String()}
}

// contextOf is the test's context with an end of its own.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// process is a command line as a process of its own, to be started.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	return cmd
}

func regexpMatch(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
