// Package clitest is what tests of commands share: an API that answers, a terminal to write to.
package clitest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
)

// API is a sidecar that answers every request in one way, and remembers the requests.
type API struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// NewAPI starts an API, which ends with the test.
func NewAPI(t *testing.T, status int, answer string) *API {
	t.Helper()
	a := &API{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+string(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
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
