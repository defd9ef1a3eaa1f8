// Package clitest is what tests of commands share: an API that answers, a terminal to write to.
package clitest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Execute runs a command line and returns its exit code.
type Execute func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Run runs a command line, and returns its exit code and what it printed.
func Run(t *testing.T, execute Execute, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	code = execute(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

// asMain makes a test binary be the program, for tests that need a process.
const asMain = "MILLRACE_TEST_AS_MAIN"

// Init is called first by TestMain. In a process that Process made, it runs the command line and
// exits. Otherwise it removes the settings of the person who runs the tests from the environment.
func Init(execute Execute) {
	if os.Getenv(asMain) != "" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "MILLRACE_") && !strings.HasPrefix(name, "MILLRACE_TEST_") {
			os.Unsetenv(name)
		}
	}
}

// Process returns a command line as a process of its own, to be started.
func Process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	return cmd
}

// Script writes a shell script that is the program, and returns the folder in which it is.
func Script(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\n" + asMain + "=1 exec " + os.Args[0] + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "millrace"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// API is a sidecar that answers every request in one way, and remembers the requests.
type API struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	on    map[string]string
}

// On sets another answer for one path.
func (a *API) On(path, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on[path] = answer
}

// NewAPI starts an API, which ends with the test.
func NewAPI(t *testing.T, status int, answer string) *API {
	t.Helper()
	a := &API{on: map[string]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+string(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, cmp.Or(a.on[r.URL.Path], answer))
	}))
	t.Cleanup(a.Close)
	return a
}

// Asked returns the requests, each as method, path, content type and body.
func (a *API) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// Addr returns the host and port of the API.
func (a *API) Addr() string { return strings.TrimPrefix(a.URL, "http://") }

// Buffer is a bytes.Buffer that may be read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// File writes a text to a file that ends with the test, and returns its path.
func File(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// OpenTerminal opens a pseudo-terminal: the side of the person, and that of the program.
func OpenTerminal(t *testing.T, columns, lines uint16) (person, program *os.File) {
	t.Helper()
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	t.Cleanup(func() { program.Close() })
	if err := pty.Setsize(program, &pty.Winsize{Cols: columns, Rows: lines}); err != nil {
		t.Fatal(err)
	}
	return person, program
}
