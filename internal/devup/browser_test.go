package devup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// fakeOpener puts a program before those of PATH that opens addresses. It runs a script. opened
// returns what the script has written to the file $opened.
func fakeOpener(t *testing.T, script string) (opened func() string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "opened")
	text := "#!/bin/sh\nopened='" + file + "'\n" + script + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, opener()), []byte(text), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, _ := os.ReadFile(file)
		return string(text)
	}
}

// The browser has a process group of its own, so that Ctrl-C, which a terminal sends to the group
// of `millrace up`, does not end it.
func TestOpensBrowser(t *testing.T) {
	opened := fakeOpener(t, `echo "$1 pid $$ group" $(ps -o pgid= -p $$) > "$opened"`)
	openBrowser(output.NewLive(&clitest.Buffer{}), "http://127.0.0.1:15680/")
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(opened(), "\n") }, "it opens the address")
	wrote := strings.Fields(opened())
	require.Len(t, wrote, 5)
	require.Equal(t, "http://127.0.0.1:15680/", wrote[0])
	require.Equal(t, wrote[2], wrote[4], "it leads its own group")
}

func TestSaysThatNoBrowserOpens(t *testing.T) {
	says := func() string {
		var out clitest.Buffer
		openBrowser(output.NewLive(&out), "http://127.0.0.1:15680/")
		brokertest.Eventually(t, func() bool { return strings.HasSuffix(out.String(), "\n") }, "it says so")
		return out.String()
	}
	fakeOpener(t, "exit 3")
	require.Equal(t, "Cannot open the web UI ("+opener()+": exit status 3). Open http://127.0.0.1:15680/ in a browser.\n", says())
	t.Setenv("PATH", t.TempDir())
	require.Contains(t, says(), "not found in $PATH). Open http://127.0.0.1:15680/ in a browser.\n")
}
