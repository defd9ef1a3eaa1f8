//go:build chaos

package chaos

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

var (
	seedFlag = flag.Uint64("seed", 0, "repeat the plan of this `seed`; 0 takes a new one")
	quick    = flag.Bool("quick", false, "do less: to see that it works")
	only     = flag.String("only", "", "run only some of the `scenarios`, separated by commas")
)

// scenario is one row of the table.
type scenario struct {
	name string
	own  bool // it kills the broker
	run  func(*world)
}

func scenarios() []scenario {
	n := func(full, less int) int {
		if *quick {
			return less
		}
		return full
	}
	lasting := time.Duration(n(180, 30)) * time.Second
	return []scenario{
		{"sidecar-killed", false, func(w *world) {
			sidecarKilled(w, n(100_000, 10_000), n(50, 10), false)
			w.aimed()
		}},
		{"sidecar-killed-state-dir", false, func(w *world) {
			sidecarKilled(w, n(100_000, 10_000), n(50, 10), true)
			w.aimed()
		}},
		{"standby", false, func(w *world) {
			standby(w, n(40_000, 6_000), n(20, 4))
			w.aimed()
		}},
		{"new-queues", false, func(w *world) { newQueues(w, n(60_000, 6_000), n(50, 10)) }},
		{"over-http", false, func(w *world) { overHTTP(w, n(5_000, 600), n(50_000, 5_000), n(60, 12)) }},
		{"frozen", false, func(w *world) { frozen(w, 200, n(3, 1)) }},
		{"network", false, func(w *world) { network(w, 200, lasting) }},
		{"clock", false, func(w *world) { clock(w, 200, n(15, 5)) }},
		{"periodic", false, func(w *world) { periodicJobs(w, n(50, 10), n(30, 6)) }},
		{"limits", true, func(w *world) { limitedJobs(w, n(6_000, 600), n(5, 3), n(20, 12), n(60, 10)) }},
		{"unique", true, func(w *world) { uniqueJobs(w, n(6_000, 1_000), 100, 6, n(60, 10)) }},
		{"governed", true, func(w *world) { governedQueues(w, 3, 3, n(60, 8)) }},
		{"broker-killed", true, func(w *world) { brokerKilled(w, n(20_000, 6_000), n(5, 2)) }},
		{"messages", true, func(w *world) {
			span := time.Duration(n(120, 20)) * time.Second
			delayedMessages(w, n(20_000, 4_000), n(10, 2), span, time.Duration(n(120, 5))*time.Second)
		}},
		{"deleted", false, func(w *world) { deletedThings(w, 200, lasting) }},
	}
}

func TestChaos(t *testing.T) {
	if *seedFlag == 0 {
		*seedFlag = uint64(time.Now().UnixNano() % 1e6) //nolint:gosec // positive
	}
	all := scenarios()
	for _, name := range strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }) {
		require.True(t, slices.ContainsFunc(all, func(s scenario) bool { return s.name == name }), "-only: there is no scenario %q", name)
	}
	t.Cleanup(func() { table.print(os.Stdout) })
	for _, s := range all {
		if *only != "" && !strings.Contains(","+*only+",", ","+s.name+",") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			v := (*brokertest.Vhost)(nil)
			if s.own {
				v = brokertest.Own(t)
			} else {
				v = brokertest.New(t)
			}
			fmt.Fprintf(os.Stderr, "%s %s, seed %d\n", time.Now().Format(time.TimeOnly), s.name, *seedFlag)
			w := begin(t, v, *seedFlag)
			s.run(w)
			fmt.Fprintf(os.Stderr, "%s %s: %d broken %v\n", time.Now().Format(time.TimeOnly), s.name, len(w.broken), w.broken)
		})
	}
}
