package crew

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Program is one of the programs.
type Program struct {
	script string
	before []string // arguments before the others
	after  []string
}

//go:embed limited.py
var limited string

//go:embed govern.py
var govern string

// Limited returns the program that works on jobs that hold slots.
func Limited() Program { return Program{script: limited} }

// Plain returns the program that works on jobs of a queue that is governed at times.
func Plain() Program { return Program{script: govern, before: []string{"work"}} }

// Producer returns the program that publishes plain jobs, with a pause after each.
func Producer(pause time.Duration) Program {
	return Program{script: govern, before: []string{"publish"}, after: []string{fmt.Sprint(pause.Seconds())}}
}

// python is Debian's own Python, for which pika is installed.
const python = "/usr/bin/python3"

// Team are processes of one program.
type Team struct {
	Killed  int // processes that were killed
	program Program
	urls    []string
	path    string // the file with the lines
	name    string
	queue   string
	serial  int
	running []process
}

type process struct {
	*exec.Cmd
	name string
}

// Start starts n processes. Each connects to any of these nodes, and appends lines to the file. The
// name of the team must be its own.
func Start(n int, program Program, urls []string, path, name, queue string) (*Team, error) {
	t := &Team{program: program, urls: urls, path: path, name: name, queue: queue, running: make([]process, n)}
	for i := range t.running {
		if err := t.start(i); err != nil {
			t.Stop()
			return nil, err
		}
	}
	return t, nil
}

func (t *Team) start(i int) error {
	t.serial++
	name := fmt.Sprintf("%s-%d", t.name, t.serial)
	args := append([]string{"-c", t.program.script}, t.program.before...)
	args = append(args, strings.Join(t.urls, ","), t.path, name, t.queue)
	cmd := exec.Command(python, append(args, t.program.after...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("crew: starting a process: %w", err)
	}
	t.running[i] = process{cmd, name}
	return nil
}

// Size returns how many processes run.
func (t *Team) Size() int { return len(t.running) }

// Kill kills a process (SIGKILL), writes that down, and starts another.
func (t *Team) Kill(i int) error {
	p := t.running[i]
	p.kill()
	t.Killed++
	if err := appendLine(t.path, fmt.Sprintf("lost\t%s\t-\t-\t%f\n", p.name, wire.Seconds(time.Now()))); err != nil {
		return err
	}
	return t.start(i)
}

// Stop kills all processes.
func (t *Team) Stop() {
	for _, p := range t.running {
		if p.Cmd != nil {
			p.kill()
		}
	}
	t.running = nil
}

func (p process) kill() {
	_ = p.Process.Kill() // it may have ended already
	_ = p.Wait()
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("crew: writing down: %w", err)
	}
	defer file.Close()
	if _, err := file.WriteString(line); err != nil {
		return fmt.Errorf("crew: writing down: %w", err)
	}
	return nil
}

// readLines reads the fields of all lines. Without a file there are none.
func readLines(path string) (lines [][]string, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("crew: reading what was written down: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(line, "\n") { // else it is still being written
			lines = append(lines, strings.Split(line[:len(line)-1], "\t"))
		}
	}
	return lines, nil
}
