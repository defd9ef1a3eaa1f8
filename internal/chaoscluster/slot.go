package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// slot runs one sidecar after another. If a sidecar exits by itself, slot starts it again, like
// systemd.
type slot struct {
	cfg sidecar.Config
	log *os.File

	mu    sync.Mutex
	p     *sidecar.Process
	down  bool     // meant to be down
	exits int      // how often it exited by itself
	last  []string // what it logged last, each time
}

func newSlot(cfg sidecar.Config, dir string) (*slot, error) {
	cfg.StateDir = filepath.Join(dir, cfg.Identity)
	out, err := os.OpenFile(filepath.Join(dir, cfg.Identity+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cfg.Output = out
	s := &slot{cfg: cfg, log: out}
	return s, s.start()
}

func (s *slot) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := sidecar.Start(s.cfg)
	if err == nil {
		s.p, s.down = p, false
	}
	return err
}

// startAs is start with another binary.
func (s *slot) startAs(binary string) error {
	s.mu.Lock()
	s.cfg.Binary = binary
	s.mu.Unlock()
	return s.start()
}

func (s *slot) process() *sidecar.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// supervise restarts the sidecar until ctx ends.
func (s *slot) supervise(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.process().Exited():
		}
		if pause.For(ctx, time.Second) != nil {
			return
		}
		s.mu.Lock()
		again := !s.down && s.ended()
		if again {
			s.exits++
			s.last = append(s.last, s.lastLines())
		}
		s.mu.Unlock()
		if again {
			_ = s.start()
		}
	}
}

// lastLines returns the end of the log.
func (s *slot) lastLines() string {
	const most = 600
	info, err := s.log.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(most, info.Size()))
	f, err := os.Open(s.log.Name())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	n, _ := f.ReadAt(text, info.Size()-int64(len(text)))
	return string(text[:n])
}

// ended reports whether the newest process has ended.
func (s *slot) ended() bool {
	select {
	case <-s.p.Exited():
		return true
	default:
		return false
	}
}

// kill kills the sidecar (SIGKILL). It stays down until start.
func (s *slot) kill() {
	s.mu.Lock()
	s.down = true
	p := s.p
	s.mu.Unlock()
	p.Kill()
}

// stop stops the sidecar in an orderly way. It stays down until start.
func (s *slot) stop() error {
	s.mu.Lock()
	s.down = true
	p := s.p
	s.mu.Unlock()
	return p.Stop()
}
