package main

import (
	"context"
	"flag"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

// forRace are the tests that are worth running with the race detector: those of commands that run
// until they are stopped. Parsing a command line takes a second with it, and happens in one
// goroutine.
const forRace = `^Test(Serve|Sidecar|Sessions|Up|Worker|ReadCommands|StreamListener)`

// envRaced is set if these were already run with the race detector.
const envRaced = "MILLRACE_TEST_RACED"

func TestMain(m *testing.M) {
	clitest.Init(func(context.Context, []string, io.Writer, io.Writer) int { main(); return 0 })
	flag.Parse()
	if run := flag.Lookup("test.run"); raced && run.Value.String() == "" {
		_ = run.Value.Set(forRace)
	}
	if skip := flag.Lookup("test.skip"); !raced && os.Getenv(envRaced) != "" && skip.Value.String() == "" {
		_ = skip.Value.Set(forRace)
	}
	brokertest.Main(m)
}

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// millrace runs a command line.
func millrace(t *testing.T, args ...string) result {
	t.Helper()
	code, out, err := clitest.Run(t, execute, args...)
	return result{code, out, err}
}

// contextOf returns the test's context with an end of its own.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func regexpMatch(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
