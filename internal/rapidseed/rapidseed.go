// Package rapidseed makes property tests repeatable: if MILLRACE_TEST_SEED names a seed, each run
// is the same. Packages with tests that use rapid import it for this effect. -rapid.seed takes
// precedence.
package rapidseed

import (
	"flag"
	"fmt"
	"os"

	_ "pgregory.net/rapid" // defines the flag
)

func init() {
	seed := os.Getenv("MILLRACE_TEST_SEED")
	if seed == "" {
		return
	}
	if err := flag.Set("rapid.seed", seed); err != nil {
		panic(fmt.Sprintf("MILLRACE_TEST_SEED: %v", err))
	}
}
