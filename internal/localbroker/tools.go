package localbroker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// scriptDirs are the directories of RabbitMQ's own scripts: Debian's package, then the generic
// archive. The scripts in /usr/sbin are wrappers that refuse ordinary users.
var scriptDirs = []string{"/usr/lib/rabbitmq/bin", "/opt/rabbitmq/sbin"}

// envDir names a directory with rabbitmq-server, rabbitmqctl and epmd of another RabbitMQ.
const envDir = "MILLRACE_TEST_RABBITMQ"

var errNotInstalled = errors.New("localbroker: RabbitMQ is not installed on this machine: " +
	"run `make deps`, or install the package rabbitmq-server (`apt-get install rabbitmq-server`)")

// tools are the programs of a node. A LavinMQ has only a server.
type tools struct {
	server, ctl, epmd string
	call              string // erl_call, which Erlang brings; empty if it is not where epmd is
}

// Available returns nil if a RabbitMQ node can be started here. Otherwise the error says what to
// install.
func Available() error {
	_, err := findTools()
	return err
}

func (c Config) tools() (tools, error) {
	switch {
	case c.LavinMQ != "":
	case c.RabbitMQ != "":
		return toolsIn(c.RabbitMQ)
	default:
		return findTools()
	}
	path, err := exec.LookPath(c.LavinMQ)
	if err != nil {
		return tools{}, fmt.Errorf("localbroker: looking for LavinMQ: %w", err)
	}
	return tools{server: path}, nil
}

func findTools() (tools, error) {
	if dir := os.Getenv(envDir); dir != "" {
		return toolsIn(dir)
	}
	epmd, err := exec.LookPath("epmd")
	if err != nil {
		return tools{}, errNotInstalled
	}
	for _, dir := range scriptDirs {
		t := tools{server: filepath.Join(dir, "rabbitmq-server"), ctl: filepath.Join(dir, "rabbitmqctl"), epmd: epmd, call: callBeside(epmd)}
		if isFile(t.server) && isFile(t.ctl) {
			return t, nil
		}
	}
	return tools{}, errNotInstalled
}

func toolsIn(dir string) (tools, error) {
	epmd := filepath.Join(dir, "epmd")
	t := tools{server: filepath.Join(dir, "rabbitmq-server"), ctl: filepath.Join(dir, "rabbitmqctl"), epmd: epmd, call: callBeside(epmd)}
	for _, program := range []string{t.server, t.ctl, t.epmd} {
		if !isFile(program) {
			return tools{}, fmt.Errorf("localbroker: %s does not hold a RabbitMQ: there is no %s", dir, program)
		}
	}
	return t, nil
}

func callBeside(epmd string) string {
	if path := filepath.Join(filepath.Dir(epmd), "erl_call"); isFile(path) {
		return path
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
