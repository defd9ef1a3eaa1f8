//go:build linux

package readmetest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// reader follows the README of a client library, in a project of their own, with a checkout of the
// repository next to it.
type reader struct {
	network *namespace
	project string
	path    []string // directories in which programs are found first
	env     []string
	profile string // commands that come first in each terminal
}

// The READMEs of the client libraries work with a `millrace up` on the usual ports, and without any
// MILLRACE_ variable: the lines that install, the programs, and the lines that run them.
func TestClientReadmes(t *testing.T) {
	network, desk := upOnTheUsualPorts(t)
	for _, language := range []struct {
		name string
		read func(*testing.T, *reader, map[string]string)
	}{{"go", readGo}, {"python", readPython}, {"ruby", readRuby}, {"javascript", readJavaScript}, {"java", readJava}} {
		t.Run(language.name, func(t *testing.T) { // one after another: they have the same queues
			r := &reader{network: network, project: filepath.Join(desk, language.name)}
			blocks := readmeBlocks(t, "clients/"+language.name+"/README.md")
			for name, text := range blocks {
				path := filepath.Join(r.project, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			language.read(t, r, blocks)
		})
	}
}

func readGo(t *testing.T, r *reader, blocks map[string]string) {
	require.Len(t, blocks, 4)
	inGo(t, r)
	r.install(t)
	r.fetch(t, "go get .")
	require.Contains(t, r.try(t, "./run.sh"), blocks["run.out"])
}

func readPython(t *testing.T, r *reader, blocks map[string]string) {
	require.Len(t, blocks, 10) // tests in clients/python run those for Django and FastAPI
	inPython(t, r)
	r.install(t)
	r.try(t, "python test_greet.py")
	r.greets(t, blocks)
}

func readRuby(t *testing.T, r *reader, blocks map[string]string) {
	require.Len(t, blocks, 12)
	inRuby(t, r)
	r.profile = blocks["env.sh"]
	r.install(t)
	r.try(t, "ruby test_greet.rb")
	r.greets(t, blocks)
	mails := r.begin(t, "ruby worker.rb")
	r.try(t, "ruby mail.rb")
	brokertest.Eventually(t, func() bool { return strings.Contains(mails.String(), "Mail to ann@example.com") }, "the mail is sent")
	ported := r.begin(t, ". ./ported.sh; wait")
	for _, name := range []string{"Ann", "Bob"} {
		brokertest.EventuallyWithin(t, time.Minute, func() bool { return strings.Contains(ported.String(), "Hello "+name+"\n") }, "%s is greeted by a class of Sidekiq's", name)
	}
}

func readJavaScript(t *testing.T, r *reader, blocks map[string]string) {
	require.Len(t, blocks, 5)
	inJavaScript(t, r)
	r.install(t)
	r.greets(t, blocks)
}

func readJava(t *testing.T, r *reader, blocks map[string]string) {
	require.Len(t, blocks, 9) // the test BrokerTest of the client runs Mails.java
	inJava(t, r)
	r.install(t)
	said := r.fetch(t, "mvn -q compile; mvn -q exec:java -Dexec.mainClass=GreetCheck")
	require.Contains(t, said, "[Ann], 1 drained, [Ann] greeted")
	r.greets(t, blocks)
}

// greets runs the example of four of the READMEs: a worker in the background, and a program that
// enqueues. The worker's output is the one that the README shows, for each name.
func (r *reader) greets(t *testing.T, blocks map[string]string) {
	t.Helper()
	line, _, found := strings.Cut(blocks["worker.out"], "0f3b…")
	require.True(t, found && strings.Contains(line, "Ann"))
	out := r.begin(t, ". ./run.sh; wait")
	for _, name := range []string{"Ann", "Bob", "Cleo", "Dan", "Eve"} {
		wanted := strings.ReplaceAll(line, "Ann", name)
		brokertest.EventuallyWithin(t, time.Minute, func() bool { return strings.Contains(out.String(), wanted) }, "%s is greeted", name)
	}
}

func (r *reader) command(t *testing.T, line string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", r.profile+line)
	cmd.Dir = r.project
	cmd.Env = append(plain(), "PATH="+strings.Join(append(r.path, os.Getenv("PATH")), ":"))
	cmd.Env = append(cmd.Env, r.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its background processes end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// install runs the lines that install the library.
func (r *reader) install(t *testing.T) {
	t.Helper()
	r.fetch(t, ". ./install.sh")
}

// fetch runs a line that needs the network of this machine, and returns its output.
func (r *reader) fetch(t *testing.T, line string) string {
	t.Helper()
	out, err := r.command(t, line).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	return string(out)
}

// try runs a line that ends by itself, and returns its output.
func (r *reader) try(t *testing.T, line string) string {
	t.Helper()
	if file, is := strings.CutPrefix(line, "./"); is {
		line = ". ./" + file
	}
	cmd := r.command(t, line)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, r.network.run(cmd.Start))
	err := cmd.Wait()
	require.NoError(t, err, "%s\n%s", line, &out)
	return out.String()
}

// begin runs a line that continues until the test ends.
func (r *reader) begin(t *testing.T, line string) *output {
	t.Helper()
	return r.network.start(t, r.command(t, line))
}

// plain returns the environment without the variables of Millrace.
func plain() (env []string) {
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "MILLRACE_") {
			env = append(env, setting)
		}
	}
	return env
}

// checkout copies the files that git knows, with uncommitted changes.
func checkout(t *testing.T, folder string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from, err := os.Open(filepath.Join(root, name))
		if os.IsNotExist(err) { // it is deleted
			continue
		}
		require.NoError(t, err)
		to := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
		written, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
		require.NoError(t, err)
		_, err = io.Copy(written, from)
		require.NoError(t, err)
		require.NoError(t, written.Close())
		require.NoError(t, from.Close())
	}
}

var inRepository = regexp.MustCompile(`\]\(https://github\.com/millrace-jobs/millrace/(?:blob|tree)/main/([^)\s]+)\)`)

// The READMEs of the packages have absolute links, because a registry shows them without the rest
// of the repository. Links into the repository lead to an existing heading. One of them says what
// other libraries have that this one does not.
func TestLinksInPackages(t *testing.T) {
	for _, language := range []string{"go", "python", "ruby", "javascript", "java"} {
		path := "clients/" + language + "/README.md"
		text := prose(document(t, path))
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			require.Regexp(t, `^(https://|#)`, found[1], "%s: a registry cannot follow it", path)
		}
		inside := inRepository.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, inside, path)
		for _, found := range inside {
			follow(t, "README.md", found[1])
		}
		require.Regexp(t, `\*\*Why not (?s:.*)/docs/coming-from\.md#what-millrace-does-not-have\)`, text, path)
	}
}
