package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// The messages of a sidecar's log about something that is away, and that is back.
const (
	logAway = "scheduler: degraded: "
	logBack = "scheduler: no longer degraded"
)

// saysAway reports whether the last message of a log about a node says that the node is away.
func saysAway(log io.Reader, node string) (away bool, err error) {
	subject := fmt.Sprintf("subject=%q", "node "+node)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case !strings.Contains(line, subject):
		case strings.Contains(line, logAway):
			away = true
		case strings.Contains(line, logBack):
			away = false
		}
	}
	return away, lines.Err()
}

// logged is saysAway of the sidecar's log, from an offset on.
func (s *slot) logged(from int64, node string) (bool, error) {
	log, err := os.Open(s.log.Name())
	if err != nil {
		return false, err
	}
	defer log.Close()
	if _, err := log.Seek(from, io.SeekStart); err != nil {
		return false, err
	}
	return saysAway(log, node)
}

// logEnds returns how long the log of each sidecar is now.
func (a *sidecars) logEnds() (ends []int64) {
	for _, s := range a.slots {
		end := int64(0)
		if info, err := s.log.Stat(); err == nil {
			end = info.Size()
		}
		ends = append(ends, end)
	}
	return ends
}
