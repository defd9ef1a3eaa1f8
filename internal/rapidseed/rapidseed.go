// Package rapidseed makes the runs of property tests the same each time when MILLRACE_TEST_SEED names
// a seed. A package whose tests use rapid imports it for this effect; -rapid.seed comes before it.
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
