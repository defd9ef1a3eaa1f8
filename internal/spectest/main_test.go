package spectest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// built is the directory with the binaries of this test process.
var built struct {
	sync.Mutex
	dir string
}

// atOnce is how many tests run in parallel. They wait more than they compute.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	brokertest.Main(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// binary builds a Go program once, from a package of this module or from files.
func binary(t *testing.T, name string, sources ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "millrace-spectest-")
		require.NoError(t, err)
		built.dir = dir
	}
	path := filepath.Join(built.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", path}, sources...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
