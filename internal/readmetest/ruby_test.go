package readmetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

var rubyWorker = regexp.MustCompile(`(?m)^    (millrace-worker .*) &$`)

// TestRubyClient runs the programs of the Ruby client's README as they are written, with the gem installed where there is no other but
// what Debian has.
func TestRubyClient(t *testing.T) {
	t.Parallel()
	blocks := readmeBlocks(t, "clients/ruby/README.md")
	s := serve(t)
	project, gems := t.TempDir(), t.TempDir()
	command := func(name string, args ...string) *exec.Cmd {
		cmd := s.command(t, name, args...)
		cmd.Dir = project
		cmd.Env = append(cmd.Env, "GEM_HOME="+gems, "PATH="+filepath.Join(gems, "bin")+":"+os.Getenv("PATH"))
		return cmd
	}
	run := func(name string, args ...string) {
		t.Helper()
		out, err := command(name, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	build := command("gem", "build", "--silent", "--output", filepath.Join(project, "millrace.gem"), "millrace.gemspec")
	build.Dir = filepath.Join(root, "clients", "ruby")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	run("gem", "install", "--local", "--no-document", "millrace.gem")
	for name, text := range blocks {
		require.NoError(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o600))
	}
	require.Len(t, blocks, 5)

	run("ruby", "test_greet.rb")
	line := rubyWorker.FindStringSubmatch(document(t, "clients/ruby/README.md"))
	require.NotNil(t, line)
	greets := start(t, command("sh", "-c", "exec "+line[1]))
	run("ruby", "enqueue.rb")
	for _, name := range []string{"Ann", "Bob", "Cleo", "Dan", "Eve"} {
		brokertest.Eventually(t, func() bool { return strings.Contains(greets.String(), "Hello "+name+", attempt 1 of ") }, "%s is greeted", name)
	}
	mails := start(t, command("ruby", "worker.rb"))
	run("ruby", "mail.rb")
	brokertest.Eventually(t, func() bool { return strings.Contains(mails.String(), "Mail to ann@example.com") }, "the mail is sent")
}

// TestRubySurvives holds the Ruby client to what its README says of handlers that end in the worst of ways, and of headers.
func TestRubySurvives(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := filepath.Join(root, "clients", "ruby")
	out, err := s.command(t, "ruby", "-I", filepath.Join(client, "lib"), filepath.Join(client, "test", "programs", "survives.rb")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "survived")
}
