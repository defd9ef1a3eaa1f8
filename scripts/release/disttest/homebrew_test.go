package disttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHomebrewFormulaIsGenerated checks that the formula is Ruby, and that it has the checksum of
// each archive that it downloads. Homebrew itself is not run.
func TestHomebrewFormulaIsGenerated(t *testing.T) {
	folder, version := dist(t)
	file := filepath.Join(folder, "millrace.rb")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	run(t, "ruby", "-wc", file)
	require.True(t, strings.HasPrefix(string(text), "class Millrace < Formula\n"))
	require.Contains(t, string(text), "\n  version \""+version+"\"\n")
	require.NotRegexp(t, `@\w+@`, string(text))
	sums, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	require.NoError(t, err)
	var systems []string
	for _, one := range regexp.MustCompile(`url "(\S+)/(millrace_\S+\.tar\.gz)"\n\s+sha256 "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		require.Equal(t, "https://github.com/millrace-jobs/millrace/releases/download/v"+version, one[1])
		require.Contains(t, string(sums), one[3]+"  "+one[2]+"\n")
		systems = append(systems, strings.TrimSuffix(strings.TrimPrefix(one[2], "millrace_"+version+"_"), ".tar.gz"))
	}
	require.Equal(t, []string{"darwin_arm64", "darwin_amd64", "linux_arm64", "linux_amd64"}, systems)
}
