package output

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Live writes lines that stay, and below them one line that is rewritten. Without a terminal the
// latter is written again now and then.
type Live struct {
	mu    sync.Mutex
	w     io.Writer
	tty   bool
	color bool
	line  string // the last line
}

const (
	rewriteEvery = 500 * time.Millisecond // on a terminal
	repeatEvery  = 5 * time.Second        // elsewhere, after a few shorter pauses
	eraseLine    = "\r\x1b[K"
)

// NewLive returns a Live that writes to w.
func NewLive(w io.Writer) *Live {
	return &Live{w: w, tty: IsTerminal(w), color: Streams{Out: w}.color()}
}

// Good returns a text that says that something works, in its colour if there are colours.
func (l *Live) Good(text string) string { return paint(l.color, green, text) }

// Address returns an address in its colour, if there are colours.
func (l *Live) Address(text string) string { return paint(l.color, cyan, text) }

// Write writes whole lines that stay, such as those of a log.
func (l *Live) Write(p []byte) (int, error) {
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
func (l *Live) Printf(format string, args ...any) { fmt.Fprintf(l, format, args...) }

func (l *Live) set(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
	if l.tty {
		fmt.Fprint(l.w, eraseLine+line)
		return
	}
	fmt.Fprintln(l.w, line)
}

// Follow keeps the last line as text returns it, until ctx ends.
func (l *Live) Follow(ctx context.Context, text func(context.Context) string) error {
	for pause := rewriteEvery; ; {
		select {
		case <-ctx.Done():
			l.end()
			return nil
		case <-time.After(pause):
			l.set(text(ctx))
		}
		if !l.tty {
			pause = min(2*pause, repeatEvery)
		}
	}
}

// end turns the last line into one that stays.
func (l *Live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tty && l.line != "" {
		fmt.Fprintln(l.w)
	}
	l.line = ""
}
