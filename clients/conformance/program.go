package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// program is a process of a trial.
type program struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

func (t *trial) start(name string, cmd *exec.Cmd) *program {
	p := &program{name: name, cmd: cmd, exited: make(chan struct{})}
	print := io.MultiWriter(t.log, &t.said)
	cmd.Stdout, cmd.Stderr = print, print
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start(), name)
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.cleanup(func() {
		if t.failed && !p.hasExited() {
			p.signal(syscall.SIGQUIT) // Go, Java and Ruby print their stacks
			<-time.After(time.Second)
		}
		p.kill()
	})
	return p
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *program) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *program) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// stop stops a program with SIGTERM. The program must end by itself, with exit code 0.
func (p *program) stop(t *trial, limit time.Duration) {
	p.signal(syscall.SIGTERM)
	p.ends(t, limit)
}

// ends waits for the end of a program that was stopped.
func (p *program) ends(t *trial, limit time.Duration) {
	select {
	case <-p.exited:
		if p.err != nil {
			t.Errorf("%s ended with %v", p.name, p.err)
		}
	case <-time.After(limit):
		t.Errorf("%s did not end within %v of its stop", p.name, limit)
		p.kill()
	}
}

// runs fails the trial if a program has ended that should be running.
func (t *trial) runs(p *program) {
	if p.hasExited() {
		t.fatalf("%s has ended: %v", p.name, p.err)
	}
}

// settings are the settings with which a worker is started.
type settings struct {
	Queues      any       `json:"queues,omitempty"`
	Concurrency int       `json:"concurrency,omitempty"`
	Lanes       []laneSet `json:"lanes,omitempty"`
	Tag         string    `json:"tag,omitempty"`
	StopTimeout float64   `json:"stop_timeout,omitempty"`
	MaxDeaths   int       `json:"max_deaths,omitempty"`
}

type laneSet struct {
	Name        string `json:"name"`
	Queues      any    `json:"queues"`
	Concurrency int    `json:"concurrency"`
}

// worker is a worker program, with the file of its effects. The file outlives the program.
type worker struct {
	*program
	t        *trial
	settings settings
	client   client
	file     string
}

// worker starts the language's worker.
func (t *trial) worker(s settings) *worker { return t.workerOf(t.client, s) }

func (t *trial) workerOf(c client, s settings) *worker {
	w := t.prepared(c, s)
	w.launch()
	return w
}

// prepared returns a worker that launch starts.
func (t *trial) prepared(c client, s settings) *worker {
	dir, err := os.MkdirTemp(t.tmp, "effects-")
	require.NoError(t, err)
	w := &worker{t: t, settings: s, client: c, file: filepath.Join(dir, "effects")}
	require.NoError(t, os.WriteFile(w.file, nil, 0o666))
	return w
}

func (w *worker) launch() {
	text, err := json.Marshal(w.settings)
	require.NoError(w.t, err)
	cmd := exec.Command("./" + w.client.dir + "/worker")
	cmd.Env = append(w.t.environ(w.client), "MILLRACE_WORKER="+string(text), "MILLRACE_EFFECTS="+w.file)
	w.program = w.t.start(w.client.name+"'s worker", cmd)
}

// environ returns the environment of a client's programs. Those in Java are short-lived, so the
// compiler that optimizes most does not pay off.
func (t *trial) environ(c client) []string {
	return slices.Concat(os.Environ(), t.room.env, c.env, []string{"MILLRACE_AMQP_URL=" + t.room.amqpURL, "MILLRACE_JAVA_OPTIONS=-XX:TieredStopAtLevel=1"})
}

// ready waits until a worker consumes a queue.
func (w *worker) ready(queue string) *worker {
	w.t.eventually(func() bool {
		w.t.runs(w.program)
		return w.t.consumed(queue)
	}, "the worker consumes %s", queue)
	return w
}

// effect is a line that a handler appended.
type effect struct {
	what, text, jid string
	attempt         int
	at              float64
}

// effects returns the lines that handlers have appended so far. It ignores a last line without its
// end. That line is still being written: a write over the end of a page can be seen in two parts.
func (w *worker) effects() (all []effect) {
	text, err := os.ReadFile(w.file)
	require.NoError(w.t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		all = append(all, w.t.effect(strings.TrimSuffix(line, "\n")))
	}
	return all
}

func (t *trial) effect(line string) effect {
	f := strings.Split(line, "\t")
	if len(f) != 5 {
		t.fatalf("an effect has %d fields, not 5: %.200q", len(f), line)
	}
	e := effect{what: f[0], text: f[1], jid: f[2]}
	_, err1 := fmt.Sscan(f[3], &e.attempt)
	_, err2 := fmt.Sscan(f[4], &e.at)
	if err1 != nil || err2 != nil {
		t.fatalf("an effect's attempt or time is no number: %.200q", line)
	}
	return e
}

// count returns how often something was done.
func (w *worker) count(what, text string) (n int) {
	for _, e := range w.effects() {
		if e.what == what && (e.text == text || text == "") {
			n++
		}
	}
	return n
}

// did waits until something was done.
func (w *worker) did(what, text string) {
	w.t.eventually(func() bool { return w.count(what, text) > 0 }, "a job does %s %s", what, text)
}

// produce runs the language's producer with commands, and returns their results.
func (t *trial) produce(commands ...map[string]any) []produced {
	return t.startProducer(t.client, commands...).results(t)
}

type producer struct {
	*program
	file     string
	commands int
}

// produced is the result of a command.
type produced struct {
	Line    int       `json:"line"`
	JIDs    []*string `json:"jids"`
	Error   string    `json:"error"`
	Message string    `json:"message"`

	Duplicate bool `json:"duplicate"`

	Made      []string `json:"made"`
	Changed   []string `json:"changed"`
	Forgotten []string `json:"forgotten"`
	Unchanged int      `json:"unchanged"`
}

func (p produced) jid(t *trial) string {
	if p.Error != "" || len(p.JIDs) != 1 || p.JIDs[0] == nil || *p.JIDs[0] == "" {
		t.fatalf("command %d was to give one jid: %+v", p.Line, p)
	}
	return *p.JIDs[0]
}

func (t *trial) startProducer(c client, commands ...map[string]any) *producer {
	dir, err := os.MkdirTemp(t.tmp, "results-")
	require.NoError(t, err)
	p := &producer{file: filepath.Join(dir, "results"), commands: len(commands)}
	require.NoError(t, os.WriteFile(p.file, nil, 0o666))
	cmd := exec.Command("./" + c.dir + "/producer")
	cmd.Env = append(t.environ(c), "MILLRACE_RESULTS="+p.file)
	var in strings.Builder
	for _, command := range commands {
		line, err := json.Marshal(command)
		require.NoError(t, err)
		in.Write(append(line, '\n'))
	}
	cmd.Stdin = io.NopCloser(strings.NewReader(in.String()))
	p.program = t.start(c.name+"'s producer", cmd)
	return p
}

// done returns how many commands have ended.
func (p *producer) done() int {
	text, _ := os.ReadFile(p.file)
	return strings.Count(string(text), "\n")
}

// results waits for the producer's end, and returns the results of its commands.
func (p *producer) results(t *trial) []produced {
	select {
	case <-p.exited:
	case <-time.After(3 * time.Minute):
		t.fatalf("%s did not end", p.name)
	}
	require.NoError(t, p.err, p.name)
	text, err := os.ReadFile(p.file)
	require.NoError(t, err)
	var all []produced
	for line := range strings.Lines(string(text)) {
		var r produced
		require.NoError(t, json.Unmarshal([]byte(line), &r), "%s", line)
		require.Equal(t, len(all)+1, r.Line, "results come in the order of the commands")
		all = append(all, r)
	}
	require.Len(t, all, p.commands, "a result for each command")
	return all
}

// command returns a command for the producer.
func command(op, class string, options map[string]any, args ...any) map[string]any {
	if args == nil {
		args = []any{}
	}
	c := map[string]any{"op": op, "class": class, "args": args}
	if options != nil {
		c["options"] = options
	}
	return c
}

func enqueue(class string, args ...any) map[string]any {
	return command("enqueue", class, nil, args...)
}

func with(options map[string]any, class string, args ...any) map[string]any {
	return command("enqueue", class, options, args...)
}

// withTimeout gives a command a deadline, in seconds.
func withTimeout(timeout float64, c map[string]any) map[string]any {
	c["timeout"] = timeout
	return c
}
