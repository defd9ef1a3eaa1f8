package spectest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// difference is a change without which a piece of the specification's code does not run here.
type difference struct {
	why string
	old string // must occur in the code; empty: new is put before the first line
	new string
}

// specification returns the code of a section, with differences.
func specification(t *testing.T, section string, differences ...difference) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "specification", section))
	require.NoError(t, err)
	code := string(raw)
	for _, d := range differences {
		require.Contains(t, code, d.old, "%s: there is nothing to change: %s", section, d.why)
		if d.old == "" {
			code = d.new + code
		} else {
			code = strings.ReplaceAll(code, d.old, d.new)
		}
	}
	return code
}

// language is a language of the test programs.
type language struct {
	name    string
	ending  string
	check   []string // succeeds if everything is installed
	missing string   // what to install otherwise
	run     []string // the command that runs a file
}

var nodeModules = absolute("../../.cache/node/node_modules")

var (
	python = language{"Python", ".py", []string{"/usr/bin/python3", "-c", "import pika"}, "Python with pika (Debian: python3-pika)",
		[]string{"/usr/bin/python3", "-u"}}
	ruby = language{"Ruby", ".rb", []string{"ruby", "-e", "require 'bunny'"}, "Ruby with bunny (Debian: ruby, ruby-bunny)",
		[]string{"ruby", "-e", "$stdout.sync = true; load ARGV.shift"}}
	javascript = language{"JavaScript", ".js", []string{"node", "-e", "require('amqplib')"}, "Node with amqplib (scripts/deps.sh node)",
		[]string{"node"}}
)

func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return path
}

// need fails a test if the language is not installed.
func (l language) need(t *testing.T) {
	t.Helper()
	out, err := command(t.Context(), "", "", l.check[0], l.check[1:]...).CombinedOutput()
	if err == nil {
		return
	}
	t.Fatalf("%s is not installed (`make deps` does it): %v %s", l.missing, err, out)
}

// client is a directory with programs in one language, for one virtual host.
type client struct {
	language
	dir   string
	vhost *brokertest.Vhost
}

// client creates a directory with the specification's code, in a file `specification`, and the
// drivers.
func (l language) client(t *testing.T, v *brokertest.Vhost, code string) *client {
	t.Helper()
	l.need(t)
	c := &client{language: l, dir: t.TempDir(), vhost: v}
	drivers, err := filepath.Glob("testdata/drivers/*" + l.ending)
	require.NoError(t, err)
	for _, driver := range drivers {
		text, err := os.ReadFile(driver)
		require.NoError(t, err)
		c.write(t, filepath.Base(driver), string(text))
	}
	c.write(t, "specification"+l.ending, code)
	return c
}

func (c *client) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600))
}

func (c *client) command(ctx context.Context, file string, args ...string) *exec.Cmd {
	args = append(append(append([]string{}, c.language.run[1:]...), file+c.ending), args...)
	return command(ctx, c.dir, c.vhost.AMQPURL(), c.language.run[0], args...)
}

// run runs a program to its end, and returns its output.
func (c *client) run(t *testing.T, file string, args ...string) string {
	t.Helper()
	return string(run(t, c.command(t.Context(), file, args...)))
}

// start runs a program during the test.
func (c *client) start(t *testing.T, file string, args ...string) *process {
	t.Helper()
	return start(t, c.name+"'s "+file, c.command(t.Context(), file, args...))
}

// goBinary builds the specification's code together with a driver.
func goBinary(t *testing.T, dir, driver, code string) string {
	t.Helper()
	file := filepath.Join(dir, "specification.go")
	require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
	// Files on a command line are one package, and must be in one directory.
	drivers, err := filepath.Glob(filepath.Join("testdata", "drivers", driver, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, drivers)
	files := []string{file}
	for _, d := range drivers {
		text, err := os.ReadFile(d)
		require.NoError(t, err)
		copied := filepath.Join(dir, filepath.Base(d))
		require.NoError(t, os.WriteFile(copied, text, 0o600))
		files = append(files, copied)
	}
	return binary(t, driver, files...)
}
