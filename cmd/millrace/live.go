package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// live writes to a terminal: lines that stay, and one below them that is written anew. Where there is no terminal, that one is written
// now and then.
type live struct {
	mu   sync.Mutex
	w    io.Writer
	tty  bool
	line string // what stands in the last line
}

const (
	rewriteEvery = 500 * time.Millisecond // on a terminal
	repeatEvery  = 5 * time.Second        // elsewhere
)

func newLive(w io.Writer) *live { return &live{w: w, tty: isTerminal(w)} }

const eraseLine = "\r\x1b[K"

// Write writes whole lines that stay; logs come here.
func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b bytes.Buffer
	if l.tty && l.line != "" {
		b.WriteString(eraseLine)
	}
	b.Write(p)
	if l.tty {
		b.WriteString(l.line)
	}
	_, err := l.w.Write(b.Bytes())
	return len(p), err
}

// Printf writes lines that stay.
func (l *live) Printf(format string, args ...any) { fmt.Fprintf(l, format, args...) }

// Set writes the last line anew.
func (l *live) Set(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
	if l.tty {
		fmt.Fprint(l.w, eraseLine+line)
		return
	}
	fmt.Fprintln(l.w, line)
}

// Follow keeps the last line as text gives it, until ctx ends.
func (l *live) Follow(ctx context.Context, text func(context.Context) string) error {
	every := repeatEvery
	if l.tty {
		every = rewriteEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.end()
			return nil
		case <-tick.C:
			l.Set(text(ctx))
		}
	}
}

// end lets the last line stay as it is.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tty && l.line != "" {
		fmt.Fprintln(l.w)
	}
	l.line = ""
}
