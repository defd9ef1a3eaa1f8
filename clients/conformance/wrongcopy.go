package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// library says which sources of a client are copied, and which variable points its programs to the
// copy, or to a folder in it. In a compiled language, the script build-copy compiles the copy.
type library struct {
	sources, variable, folder string
	compiled                  bool
}

var libraries = map[string]library{
	"go":         {"clients/go", "MILLRACE_PROGRAMS", ".build", true},
	"javascript": {"clients/javascript", "MILLRACE_PROGRAMS", "conformance", true},
	"python":     {"clients/python/src", "PYTHONPATH", "", false},
	"ruby":       {"clients/ruby/lib", "RUBYLIB", "", false},
}

// correct is the small worker without a mistake. It passes, so a failure of the other small workers
// comes from their mistakes. A copied client needs none: its original passes.
const correct = "no-mistake"

// make returns the wrong client. A copy goes to a folder in tmp.
func (m *mistake) make(tmp string) (client, error) {
	if m.lang == "" {
		return client{name: m.name, dir: "clients/conformance/wrong/" + m.name}, nil
	}
	l := libraries[m.lang]
	dir, err := os.MkdirTemp(tmp, "wrong-")
	if err != nil {
		return client{}, err
	}
	if err := copySources(dir, l.sources); err != nil {
		return client{}, err
	}
	path := filepath.Join(dir, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return client{}, err
	}
	if n := bytes.Count(text, []byte(m.from)); n != 1 {
		return client{}, fmt.Errorf("the mistake %q does not apply: %s/%s has %q %d times, not once", m, l.sources, m.file, m.from, n)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(m.from), []byte(m.to), 1), 0o600); err != nil {
		return client{}, err
	}
	c := client{name: m.String(), dir: languageClient(m.lang).dir, env: []string{l.variable + "=" + filepath.Join(dir, l.folder)}}
	if l.compiled {
		c.source = dir
	}
	return c, nil
}

func (m *mistake) String() string {
	if m.lang == "" {
		return m.name
	}
	return m.lang + ", " + m.name
}
