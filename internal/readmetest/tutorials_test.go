//go:build linux

package readmetest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// The quick start of README and the tutorials work with a `millrace up` on the usual ports, and the
// output is what the page shows.
func TestTutorials(t *testing.T) {
	network, desk := upOnTheUsualPorts(t)
	for _, page := range []struct {
		path, name string
		prepare    func(*testing.T, *reader)
	}{
		{"README.md", "quickstart", inPython},
		{"docs/tutorials/python.md", "python", inPython},
		{"docs/tutorials/ruby.md", "ruby", inRuby},
		{"docs/tutorials/javascript.md", "javascript", inJavaScript},
		{"docs/tutorials/go.md", "go", inGo},
		{"docs/tutorials/java.md", "java", inJava},
		{"docs/tutorials/periodic.md", "periodic", func(*testing.T, *reader) {}},
		{"docs/tutorials/rate-limit.md", "rate-limit", func(*testing.T, *reader) {}},
		{"docs/tutorials/one-per-customer.md", "one-per-customer", func(*testing.T, *reader) {}},
		{"docs/tutorials/no-duplicates.md", "no-duplicates", func(*testing.T, *reader) {}},
		{"docs/tutorials/govern-a-queue.md", "govern-a-queue", inPython},
	} {
		t.Run(page.name, func(t *testing.T) { // one after another: they have the same queue
			r := &reader{network: network, project: filepath.Join(desk, page.name)}
			require.NoError(t, os.MkdirAll(r.project, 0o700))
			page.prepare(t, r)
			r.follow(t, page.path)
		})
	}
}

// The settings that an installation needs here, besides the page: its directories, and that it uses
// packages from this machine and no registry.

func inPython(_ *testing.T, r *reader) { r.path = []string{filepath.Join(r.project, ".venv", "bin")} }

func inRuby(t *testing.T, r *reader) {
	home := t.TempDir()
	settings := filepath.Join(home, "gemrc") // bunny is Debian's, so RubyGems is not needed
	require.NoError(t, os.WriteFile(settings, []byte("install: --local --no-document\n"), 0o600))
	r.env = []string{"HOME=" + home, "GEMRC=" + settings}
}

func inJavaScript(_ *testing.T, r *reader) {
	r.env = []string{"npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_fund=false"}
}

func inGo(_ *testing.T, r *reader) { r.env = []string{"GOWORK=off"} }

func inJava(t *testing.T, r *reader) {
	tools := t.TempDir() // Maven keeps its downloads in .cache, as in all tests
	script := "#!/bin/sh\nPATH='" + os.Getenv("PATH") + "' exec '" + filepath.Join(root, "scripts", "mvn.sh") + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(tools, "mvn"), []byte(script), 0o700))
	r.path = []string{tools}
}

// upOnTheUsualPorts runs `millrace up` in a network of its own. It returns a directory with a
// checkout of the repository.
func upOnTheUsualPorts(t *testing.T) (network *namespace, desk string) {
	t.Helper()
	if err := localbroker.Available(); err != nil {
		t.Skipf("millrace up needs RabbitMQ here: %v", err)
	}
	network, desk = newNamespace(t), t.TempDir()
	copied := filepath.Join(desk, "millrace")
	checkout(t, copied)
	require.NoError(t, os.Mkdir(filepath.Join(copied, "bin"), 0o700))
	require.NoError(t, os.Symlink(program(t), filepath.Join(copied, "bin", "millrace")))
	up := exec.CommandContext(t.Context(), program(t), "up")
	up.Env = append(plain(), "XDG_STATE_HOME="+t.TempDir())
	up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
	up.WaitDelay = 30 * time.Second // it stops its broker first
	said := network.start(t, up)
	brokertest.EventuallyWithin(t, 2*time.Minute, func() bool { return strings.Contains(said.String(), "amqp://guest:guest@127.0.0.1:5672/") }, "millrace up is up")
	return network, desk
}

// block is a fenced block of a page: a program, commands (sh) or the output (text).
type block struct{ language, file, text string }

// blocksOf returns the blocks of a page in their order. Each names a file.
func blocksOf(t *testing.T, path string) (blocks []block) {
	t.Helper()
	for _, found := range fence.FindAllStringSubmatch(document(t, path), -1) {
		info := named.FindStringSubmatch(found[1])
		require.NotNil(t, info, "%s: a block that no test runs: %q", path, found[1])
		blocks = append(blocks, block{info[1], info[2], found[2]})
	}
	require.NotEmpty(t, blocks)
	return blocks
}

var (
	aJID     = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	aMoment  = regexp.MustCompile(`\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?(?: +in \d+s| +\d+s ago)?`)
	aBackoff = regexp.MustCompile(`\b(retry_in|retryIn)=[\d.]+`)
)

// follow does what a page says: it saves programs, runs commands, and compares their output with
// the page. The names of blocks have a meaning:
//
//   - env.sh is for each terminal, so it runs before all later commands.
//   - install*.sh needs the network of this machine.
//   - worker.sh runs in the background, and worker*.out is its output.
//   - look*.sh is repeated until it shows the next block, because lists show a change a moment
//     later.
//
// JID in a command, and any job's id in an output, is the id that was printed last.
func (r *reader) follow(t *testing.T, path string) {
	t.Helper()
	var worker *output
	var last struct{ line, wrote string }
	jid, read := "JID", 0
	blocks := blocksOf(t, path)
	for _, b := range blocks {
		text := strings.ReplaceAll(b.text, "JID", jid)
		if b.language == "text" {
			text = aJID.ReplaceAllString(b.text, jid)
		}
		switch {
		case b.file == "env.sh":
			r.profile = text
		case b.language == "sh" && strings.HasPrefix(b.file, "install"):
			r.fetch(t, text)
		case b.language == "sh" && b.file == "worker.sh":
			require.Nil(t, worker, "%s: two workers", path)
			worker = r.begin(t, text+"wait\n")
		case b.language == "sh":
			last.line, last.wrote = text, r.try(t, text)
			if jid == "JID" {
				jid = cmp.Or(aJID.FindString(last.wrote), jid)
			}
		case b.language == "text" && strings.HasPrefix(b.file, "worker"):
			require.NotNil(t, worker, "%s: %s: no worker runs", path, b.file)
			wanted := shown(text)
			brokertest.EventuallyWithin(t, time.Minute, func() bool { return wanted.MatchString(worker.String()[read:]) }, "%s: the worker writes %s", path, b.file)
			read += wanted.FindStringIndex(worker.String()[read:])[1]
		case b.language == "text":
			wanted := shown(text)
			if strings.HasPrefix(b.file, "look") {
				brokertest.Eventually(t, func() bool {
					if !wanted.MatchString(last.wrote) {
						last.wrote = r.try(t, last.line)
					}
					return wanted.MatchString(last.wrote)
				}, "%s: %s", path, b.file)
			}
			require.Regexp(t, wanted, last.wrote, "%s: %s", path, b.file)
		default:
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(r.project, b.file)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(r.project, b.file), []byte(b.text), 0o600))
		}
	}
}

// shown returns a pattern for an output that a page shows. "…" stands for any text, and for any
// lines if it is alone in a line. Times, and the number of spaces between columns, do not matter.
func shown(text string) *regexp.Regexp {
	text = aBackoff.ReplaceAllString(aMoment.ReplaceAllString(text, "…"), "$1=…")
	var pattern strings.Builder
	pattern.WriteString("(?m)")
	for line := range strings.Lines(text) {
		if line == "…\n" {
			pattern.WriteString(`(?s:.*?)`)
			continue
		}
		line = strings.Join(strings.Fields(regexp.QuoteMeta(line)), " +")
		pattern.WriteString("^" + strings.ReplaceAll(line, "…", ".*") + " *\n")
	}
	return regexp.MustCompile(pattern.String())
}

func TestShown(t *testing.T) {
	page := shown("TIME  ID\n2026-11-25 04:08:48  in 35s 7 a.b\n…\nend\n")
	require.Regexp(t, page, "x\nTIME   ID  \n12:00  7   a.b\nmore\nand more\nend\n")
	require.Regexp(t, shown("retry_in=35s at=2026-11-25T04:08:48Z\n"), "retry_in=7s at=2027-01-01T00:00:00Z\n")
	for _, other := range []string{"TIME ID\n12:00 7 a-b\nend\n", "TIME ID\n12:00 8 a.b\nend\n", "TIME ID\n12:00 7 a.b\nend", "12:00 7 a.b\nTIME ID\nend\n"} {
		require.NotRegexp(t, page, other)
	}
}
